"""Claims shared by native groups on random small clusters, and what docs/native-gangs.md promises of them.

A device is on one node, so all pods with a claim must be on one node. Only `play` uses the product, to run it; no rule
is taken from its code.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from volcano_py.scheduler.actions import ACTIONS
from volcano_py.scheduler.framework.config import load
from volcano_py.simulate.cycles import Simulation

Manifest = dict[str, Any]
DRIVER = "gpu.example.com"
CONF = """actions: "enqueue, allocate"
tiers: [{plugins: [{name: priority}, {name: gang}, {name: predicates}, {name: nodeorder}]}]
"""
CYCLES = 6


@dataclass
class ClaimGroup:
    """A PodGroup of pods of one CPU each."""

    name: str
    least: int
    pods: int
    claims: dict[str, str]
    """The claims of its pods, by the name in the pods."""
    shared: set[str]
    """The names that the group lists with the same claim."""


@dataclass
class ClaimCluster:
    cpus: dict[str, int]
    devices: dict[str, int]
    wanted: dict[str, int]
    """Claims, with the number of devices."""
    groups: list[ClaimGroup] = field(default_factory=list)


def drawn(seed: int, number: int) -> ClaimCluster:
    r = random.Random(f"claims {seed} {number}")
    nodes = [f"n{i}" for i in range(r.randint(1, 4))]
    case = ClaimCluster(
        {n: r.randint(1, 5) for n in nodes},
        {n: r.choice((0, 1, 2, 3)) for n in nodes},
        {f"claim-{i}": r.choice((1, 1, 2)) for i in range(r.randint(1, 4))},
    )
    for i in range(r.randint(1, 3)):
        named = r.sample(sorted(case.wanted), k=min(r.choice((1, 1, 2)), len(case.wanted)))
        claims = {f"c{k}": claim for k, claim in enumerate(named)}
        pods = r.randint(1, 4)
        shared = {name for name in claims if r.random() < 0.8}
        case.groups.append(ClaimGroup(f"g{i}", r.randint(1, pods), pods, claims, shared))
    return case


def manifests(case: ClaimCluster) -> Iterator[Manifest]:
    for name, cpu in case.cpus.items():
        amounts = {"cpu": str(cpu), "memory": "64Gi", "pods": "110"}
        yield made("v1", "Node", name, status={"allocatable": amounts, "capacity": amounts})
        if case.devices[name]:
            pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
            devices = [{"name": f"d{i}"} for i in range(case.devices[name])]
            spec = {"driver": DRIVER, "nodeName": name, "pool": pool, "devices": devices}
            yield made("resource.k8s.io/v1", "ResourceSlice", name, spec=spec)
    expression = f'device.driver == "{DRIVER}"'
    yield made("resource.k8s.io/v1", "DeviceClass", "gpu", spec={"selectors": [{"cel": {"expression": expression}}]})
    for claim, count in case.wanted.items():
        request = {"name": "r", "exactly": {"deviceClassName": "gpu", "count": count}}
        yield made("resource.k8s.io/v1", "ResourceClaim", claim, spec={"devices": {"requests": [request]}})
    for group in case.groups:
        listed = [
            {"name": name if name in group.shared else f"other-{name}", "resourceClaimName": claim}
            for name, claim in group.claims.items()
        ]
        spec = {"schedulingPolicy": {"gang": {"minCount": group.least}}, "resourceClaims": listed}
        yield made("scheduling.k8s.io/v1beta1", "PodGroup", group.name, spec=spec)
        for i in range(group.pods):
            yield made("v1", "Pod", f"{group.name}-{i}", spec=pod_spec(group))


def pod_spec(group: ClaimGroup) -> Manifest:
    return {
        "schedulerName": "volcano",
        "schedulingGroup": {"podGroupName": group.name},
        "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}],
        "resourceClaims": [{"name": name, "resourceClaimName": claim} for name, claim in group.claims.items()],
    }


def made(version: str, kind: str, name: str, **fields: Any) -> Manifest:
    metadata = {"name": name, "uid": f"{kind}-{name}"}
    if kind not in ("Node", "ResourceSlice", "DeviceClass"):
        metadata["namespace"] = "default"
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}


class ClaimOutcome(NamedTuple):
    bound: dict[str, str]
    """Pods to nodes."""
    devices: dict[str, list[tuple[str, str]]]
    """By claim: nodes with devices."""
    consumers: dict[str, list[tuple[str, str]]]
    """By claim: resources and names."""
    faults: list[str]


def play(case: ClaimCluster, deviations: str = "") -> ClaimOutcome:
    simulation = Simulation(list(manifests(case)))
    assert not simulation.rejected, simulation.rejected
    bound: dict[str, str] = {}
    faults: list[str] = []
    conf = load(CONF + deviations, ACTIONS)
    for _ in range(CYCLES):
        result = simulation.cycle(conf)
        faults += result.faults
        bound |= {key.partition("/")[2]: node for key, node in result.bound.items()}
    devices, consumers = {}, {}
    for claim in case.wanted:
        status = simulation.cluster.others["ResourceClaim"][f"default/{claim}"].status
        results = ((status.allocation or {}).get("devices") or {}).get("results") or ()
        devices[claim] = [(row["pool"], row["device"]) for row in results]
        consumers[claim] = [(c.resource, c.name) for c in status.reserved_for or ()]
    return ClaimOutcome(bound, devices, consumers, faults)


def judge(case: ClaimCluster, found: ClaimOutcome) -> list[str]:
    """What is wrong."""
    wrong = list(found.faults)
    used: Counter[tuple[str, str]] = Counter(d for devices in found.devices.values() for d in devices)
    wrong += [f"device {d} belongs to {count} claims" for d, count in used.items() if count > 1]
    cpu = Counter(found.bound.values())
    wrong += [f"{node} has {cpu[node]} pods of one CPU" for node in cpu if cpu[node] > case.cpus[node]]
    expected: dict[str, set[tuple[str, str]]] = {claim: set() for claim in case.wanted}
    for group in case.groups:
        placed = [f"{group.name}-{i}" for i in range(group.pods) if f"{group.name}-{i}" in found.bound]
        if 0 < len(placed) < group.least:
            wrong.append(f"{group.name} runs with {len(placed)} of {group.least} pods")
        for name, claim in group.claims.items():
            here = {node for node, _ in found.devices[claim]}
            for pod in placed:
                if here != {found.bound[pod]} or len(found.devices[claim]) != case.wanted[claim]:
                    wrong.append(f"{pod} is on {found.bound[pod]}, {claim} has {found.devices[claim]}")
            if placed and name in group.shared:
                expected[claim].add(("podgroups", group.name))
            elif placed:
                expected[claim] |= {("pods", pod) for pod in placed}
    for claim, wanted in expected.items():
        if sorted(found.consumers[claim]) != sorted(wanted):
            wrong.append(f"{claim} is reserved for {found.consumers[claim]}, not for {sorted(wanted)}")
        if found.devices[claim] and not wanted:
            wrong.append(f"{claim} holds {found.devices[claim]} for no pod")
    wrong += [
        f"{group.name} waits although {node} has room" for group in case.groups for node in room(case, found, group)
    ]
    return wrong


def room(case: ClaimCluster, found: ClaimOutcome, group: ClaimGroup) -> list[str]:
    """Nodes on which a group without a pod could start now, with the minimum that it has."""
    if any(f"{group.name}-{i}" in found.bound for i in range(group.pods)):
        return []
    cpu = Counter(found.bound.values())
    taken = Counter(node for devices in found.devices.values() for node, _ in devices)
    nodes = []
    for node in case.cpus:
        new = [claim for claim in group.claims.values() if not found.devices[claim]]
        elsewhere = [c for c in group.claims.values() if found.devices[c] and found.devices[c][0][0] != node]
        devices = sum(case.wanted[claim] for claim in new) <= case.devices[node] - taken[node]
        if not elsewhere and devices and case.cpus[node] - cpu[node] >= group.least:
            nodes.append(node)
    return nodes
