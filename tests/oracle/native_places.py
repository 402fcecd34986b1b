"""The places of native gangs in their queue on random small clusters; docs/deviations.md#native-places has the promise.

All pods request one CPU and all gangs need all of their pods, so that which gangs start follows from their order alone.
Only `started` uses the product, to run it; no rule is taken from its code.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from volcano_py.scheduler.actions import ACTIONS
from volcano_py.scheduler.framework.config import load
from volcano_py.simulate.cycles import Simulation

Manifest = dict[str, Any]
CONF = """actions: "enqueue, allocate"
tiers: [{plugins: [{name: priority}, {name: gang}, {name: predicates}]}]
"""
VOLCANO, NATIVE, TREE = "a PodGroup of Volcano", "a native PodGroup", "a tree"
_FIRST = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Placed:
    """A gang. Times are in hours, all different."""

    name: str
    kind: str
    created: int
    pods: list[int]
    """When each pod was created."""
    priority: int = 0

    @property
    def place(self) -> int:
        """The earlier, the sooner it is tried."""
        return self.created if self.kind == VOLCANO else min(self.created, *self.pods)


def drawn(seed: int, number: int) -> tuple[int, list[Placed]]:
    """The CPUs of the cluster, and gangs."""
    r = random.Random(f"places {seed} {number}")
    hours = r.sample(range(1000), k=60)
    gangs = []
    for i in range(r.randint(2, 6)):
        kind = r.choice((VOLCANO, NATIVE, NATIVE, TREE))
        pods = [hours.pop() for _ in range(r.randint(2, 4))]
        gangs.append(Placed(f"g{i}", kind, hours.pop(), pods, 0 if kind == VOLCANO else r.choice((0, 0, 5))))
    total = sum(len(gang.pods) for gang in gangs)
    return r.randint(1, total), gangs


def expected(cpu: int, gangs: list[Placed], *, by_group: bool = False) -> set[str]:
    """The gangs that start: each one that fits beside those before it. `by_group`: only the groups' creation counts."""
    found = set()
    for gang in sorted(gangs, key=lambda g: (-g.priority, g.created if by_group else g.place)):
        if len(gang.pods) <= cpu:
            cpu -= len(gang.pods)
            found.add(gang.name)
    return found


def manifests(cpu: int, gangs: list[Placed]) -> Iterator[Manifest]:
    amounts = {"cpu": str(cpu), "memory": "64Gi", "pods": "110"}
    yield {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": amounts}}
    for gang in gangs:
        yield from _groups(gang)
        for i, created in enumerate(gang.pods):
            pod = made("v1", "Pod", f"{gang.name}-{i}", created)
            resources = {"requests": {"cpu": "1"}}
            pod["spec"] = {"schedulerName": "volcano", "priority": gang.priority}
            pod["spec"]["containers"] = [{"name": "c", "image": "i", "resources": resources}]
            if gang.kind == VOLCANO:
                pod["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": gang.name}
            else:
                of = f"{gang.name}-{i % 2}" if gang.kind == TREE else gang.name
                pod["spec"]["schedulingGroup"] = {"podGroupName": of}
            yield pod


def _groups(gang: Placed) -> Iterator[Manifest]:
    count = len(gang.pods)
    if gang.kind == VOLCANO:
        spec: Manifest = {"minMember": count, "queue": "default"}
        yield {**made("scheduling.volcano.sh/v1beta1", "PodGroup", gang.name, gang.created), "spec": spec}
    elif gang.kind == NATIVE:
        spec = {"schedulingPolicy": {"gang": {"minCount": count}}, "priority": gang.priority}
        yield {**made("scheduling.k8s.io/v1beta1", "PodGroup", gang.name, gang.created), "spec": spec}
    else:
        spec = {"schedulingPolicy": {"gang": {"minGroupCount": 2}}, "priority": gang.priority}
        yield {**made("scheduling.k8s.io/v1alpha3", "CompositePodGroup", gang.name, gang.created), "spec": spec}
        for i in range(2):
            least = (count + 1 - i) // 2
            spec = {"schedulingPolicy": {"gang": {"minCount": least}}, "parentCompositePodGroupName": gang.name}
            child = made("scheduling.k8s.io/v1beta1", "PodGroup", f"{gang.name}-{i}", gang.created)
            yield {**child, "spec": {**spec, "priority": gang.priority}}


def made(version: str, kind: str, name: str, created: int) -> Manifest:
    at = (_FIRST + timedelta(hours=created)).strftime("%Y-%m-%dT%H:%M:%SZ")
    metadata = {"name": name, "namespace": "default", "uid": f"{kind}-{name}", "creationTimestamp": at}
    return {"apiVersion": version, "kind": kind, "metadata": metadata}


def started(cpu: int, gangs: list[Placed], deviations: str = "") -> tuple[set[str], list[str]]:
    """The gangs of which all pods are bound, and what is wrong with the others."""
    simulation = Simulation(list(manifests(cpu, gangs)))
    assert not simulation.rejected, simulation.rejected
    conf = load(CONF + deviations, ACTIONS)
    bound: list[str] = []
    wrong: list[str] = []
    for _ in range(3):
        result = simulation.cycle(conf)
        wrong += result.faults
        bound += [key.partition("/")[2].partition("-")[0] for key in result.bound]
    counts = {gang.name: bound.count(gang.name) for gang in gangs}
    wrong += [f"{g.name} has {counts[g.name]} of {len(g.pods)} pods" for g in gangs if 0 < counts[g.name] < len(g.pods)]
    return {name for name, count in counts.items() if count}, wrong
