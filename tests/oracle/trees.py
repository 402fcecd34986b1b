"""Trees of native groups on random small clusters, and by exhaustive search whether one of them fits.

Only `play` uses the product, to run it; no rule is taken from its code. All pods request whole CPUs.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from volcano_py.scheduler.actions import ACTIONS
from volcano_py.scheduler.framework.config import load
from volcano_py.simulate.cycles import Simulation

Manifest = dict[str, Any]
CONF = """actions: "enqueue, allocate, backfill"
tiers: [{plugins: [{name: gang}, {name: predicates}, {name: nodeorder}]}]
"""
KEYS = ("zone", "rack")


@dataclass
class Group:
    """A PodGroup with pods, or a CompositePodGroup with groups below it. `least`: None is the policy basic."""

    name: str
    least: int | None
    key: str = ""
    below: list[Group] = field(default_factory=list)
    pods: int = 0
    cpu: int = 1
    running: list[str] = field(default_factory=list)
    """The nodes on which pods run before the first cycle, of `pods` in number at most."""

    @property
    def need(self) -> int:
        return 1 if self.least is None else self.least

    def leaves(self) -> list[Group]:
        return [leaf for child in self.below for leaf in child.leaves()] if self.below else [self]

    def every(self) -> list[Group]:
        return [self, *(group for child in self.below for group in child.every())]


@dataclass
class Case:
    nodes: dict[str, tuple[int, dict[str, str]]]
    """CPUs and labels."""
    roots: list[Group]


Places = dict[str, list[str]]
"""By PodGroup, the nodes of its pods."""


# ---- drawing -------------------------------------------------------------------------------------------------------


def drawn(seed: int, number: int) -> Case:
    r = random.Random(f"{seed} {number}")
    nodes = {}
    for i in range(r.randint(1, 5)):
        labels = {"zone": r.choice("ab"), "rack": f"r{r.randint(1, 3)}"}
        if r.random() < 0.1:
            del labels["rack"]
        nodes[f"n{i}"] = (r.randint(1, 4), labels)
    roots = []
    for i in range(r.randint(1, 2)):
        root = _group(r, f"t{i}", r.choice((1, 2, 2, 3, 3, 4)), 1 if i else 2)
        roots.append(root)
    return Case(nodes, roots)


def _group(r: random.Random, name: str, levels: int, most: int) -> Group:
    key = r.choice(("", "", *KEYS))
    if levels == 1:
        pods = r.randint(1, 3)
        least = None if r.random() < 0.2 else r.randint(1, pods + (r.random() < 0.1))
        return Group(name, least, key, pods=pods, cpu=r.randint(1, 2))
    below = [_group(r, f"{name}{'abc'[i]}", levels - 1, 1) for i in range(r.randint(1, most + (r.random() < 0.4)))]
    least = None if r.random() < 0.2 else r.randint(1, len(below))
    return Group(name, least, key, below)


# ---- running -------------------------------------------------------------------------------------------------------


def manifests(case: Case) -> list[Manifest]:
    found: list[Manifest] = []
    for name, (cpu, labels) in case.nodes.items():
        amounts = {"cpu": str(cpu), "memory": "64Gi", "pods": "110"}
        found.append({"kind": "Node", "metadata": {"name": name, "labels": labels}, "status": {"allocatable": amounts}})
    for root in case.roots:
        found += _objects(root, "")
    return found


def _objects(group: Group, parent: str) -> list[Manifest]:
    policy = "minGroupCount" if group.below else "minCount"
    spec: Manifest = {"schedulingPolicy": {"basic": {}} if group.least is None else {"gang": {policy: group.least}}}
    if group.key:
        spec["schedulingConstraints"] = {"topology": [{"key": group.key}]}
    if parent:
        spec["parentCompositePodGroupName"] = parent
    kind, version = ("CompositePodGroup", "v1alpha3") if group.below else ("PodGroup", "v1beta1")
    metadata = {"name": group.name, "namespace": "default", "creationTimestamp": "2026-01-01T00:00:00Z"}
    found = [{"apiVersion": f"scheduling.k8s.io/{version}", "kind": kind, "metadata": metadata, "spec": spec}]
    for child in group.below:
        found += _objects(child, group.name)
    for i in range(group.pods):
        resources = {"requests": {"cpu": str(group.cpu)}}
        pod: Manifest = {
            "kind": "Pod",
            "metadata": {**metadata, "name": f"{group.name}-{i}"},
            "spec": {
                "schedulerName": "volcano",
                "schedulingGroup": {"podGroupName": group.name},
                "containers": [{"name": "c", "image": "i", "resources": resources}],
            },
            "status": {"phase": "Pending"},
        }
        if i < len(group.running):
            pod["spec"]["nodeName"], pod["status"]["phase"] = group.running[i], "Running"
        found.append(pod)
    return found


def play(case: Case, deviations: dict[str, bool] | None = None, most: int = 12) -> tuple[Places, list[str]]:
    """Run cycles until nothing is bound; the places of all pods, and faults."""
    simulation = Simulation(manifests(case))
    conf = load(f"{CONF}deviations: {json.dumps(deviations or {})}\n", ACTIONS)
    places: Places = {leaf.name: list(leaf.running) for root in case.roots for leaf in root.leaves()}
    faults: list[str] = []
    for _ in range(most):
        result = simulation.cycle(conf)
        faults += result.faults
        for pod, node in result.bound.items():
            places[pod.partition("/")[2].rpartition("-")[0]].append(node)
        faults += [f"{root.name} is bound in part: {places}" for root in case.roots if _is_partial(root, places)]
        if not result.bound:
            return places, faults
    return places, [*faults, "no rest"]


# ---- what must be true ---------------------------------------------------------------------------------------------


def holds(group: Group, places: Places) -> bool:
    if not group.below:
        return len(places.get(group.name, ())) >= group.need
    return sum(holds(child, places) for child in group.below) >= group.need


def _is_partial(group: Group, places: Places) -> bool:
    """Whether a group, or one below it, has pods on nodes and not its minimum."""
    some = any(places.get(leaf.name) for leaf in group.leaves())
    return (some and not holds(group, places)) or any(_is_partial(child, places) for child in group.below)


def violated(case: Case, group: Group, places: Places) -> bool:
    """Whether the pods of a group, or of one below it, are on nodes with different values of its key."""
    if group.key:
        nodes = [node for leaf in group.leaves() for node in places.get(leaf.name, ())]
        if len({case.nodes[node][1].get(group.key) for node in nodes}) > 1:
            return True
        if any(group.key not in case.nodes[node][1] for node in nodes):
            return True
    return any(violated(case, child, places) for child in group.below)


def free(case: Case, places: Places) -> dict[str, int]:
    left = {name: cpu for name, (cpu, _) in case.nodes.items()}
    for root in case.roots:
        for leaf in root.leaves():
            for node in places.get(leaf.name, ()):
                left[node] -= leaf.cpu
    return left


def could_hold(case: Case, root: Group, places: Places) -> bool:
    """Whether some arrangement of further pods of a tree on free nodes makes it hold: all are tried."""
    left = free(case, places)
    leaves = root.leaves()

    def search(i: int, now: Places) -> bool:
        if holds(root, now):
            return True
        if i == len(leaves):
            return False
        if search(i + 1, now):  # without further pods of this group
            return True
        leaf = leaves[i]
        missing = leaf.need - len(now.get(leaf.name, ()))
        if missing <= 0 or missing > leaf.pods - len(now.get(leaf.name, ())):
            return False
        for nodes in _multisets(sorted(left), missing):
            if any(left[node] < leaf.cpu * nodes.count(node) for node in nodes):
                continue
            then = {**now, leaf.name: [*now.get(leaf.name, ()), *nodes]}
            if violated(case, root, then):
                continue
            for node in nodes:
                left[node] -= leaf.cpu
            found = search(i + 1, then)
            for node in nodes:
                left[node] += leaf.cpu
            if found:
                return True
        return False

    return search(0, places)


def _multisets(nodes: list[str], count: int) -> Iterator[list[str]]:
    if count == 0:
        yield []
        return
    for i, node in enumerate(nodes):
        for rest in _multisets(nodes[i:], count - 1):
            yield [node, *rest]


def one_more_fits(case: Case, root: Group, places: Places) -> str:
    """A PodGroup with its minimum of which one more pod fits, or ""."""
    left = free(case, places)
    for leaf in root.leaves():
        have = places.get(leaf.name, [])
        if len(have) < leaf.need or len(have) >= leaf.pods or not have:
            continue
        for node, cpu in left.items():
            if cpu >= leaf.cpu and not violated(case, root, {**places, leaf.name: [*have, node]}):
                return f"{leaf.name} on {node}"
    return ""


def judge(case: Case, deviations: dict[str, bool] | None = None) -> tuple[list[str], int]:
    """What is wrong, and how many trees could hold in the beginning."""
    begun = {leaf.name: list(leaf.running) for root in case.roots for leaf in root.leaves()}
    asked = sum(could_hold(case, root, begun) for root in case.roots)
    places, wrong = play(case, deviations)
    for root in case.roots:
        if violated(case, root, places):
            wrong.append(f"{root.name}: pods of a group are in several domains: {places}")
        if not holds(root, places) and could_hold(case, root, places):
            wrong.append(f"{root.name} fits and was not started: {places}")
        if holds(root, places) and (more := one_more_fits(case, root, places)):
            wrong.append(f"a pod of {more} fits and was not placed: {places}")
    if any(amount < 0 for amount in free(case, places).values()):
        wrong.append(f"a node has more pods than it can hold: {places}")
    return wrong, asked
