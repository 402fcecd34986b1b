"""Root groups on random clusters against a model that counts places and reads no code of the scheduler.

All pods request one CPU, so that a node is a number of places, and a domain the sum of its nodes.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import msgspec
import pytest

from volcano_py.scheduler.profiles.groups.attempt import GroupAttempt, GroupResult
from volcano_py.scheduler.profiles.groups.tree import GroupId
from volcano_py.simulate.profiles import Scenario, run

GATES = {"GenericWorkload": True, "TopologyAwareWorkloadScheduling": True, "CompositePodGroup": True}
SEEDS = range(150)


def node(name: str, cpu: int, rack: str) -> dict[str, Any]:
    amounts = {"cpu": str(cpu), "memory": "64Gi", "pods": "110"}
    metadata = {"name": name, "labels": {"rack": rack}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": {"allocatable": amounts}}


def pod(name: str, group: str, priority: int = 0, on: str = "") -> dict[str, Any]:
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]
    spec: dict[str, Any] = {"schedulerName": "default-scheduler", "containers": containers, "priority": priority}
    spec["terminationGracePeriodSeconds"] = 0
    if group:
        spec["schedulingGroup"] = {"podGroupName": group}
    if on:
        spec["nodeName"] = on
    created = "2020-01-01T00:00:00Z" if on else "2020-01-01T00:00:09Z"
    metadata = {"name": name, "namespace": "default", "creationTimestamp": created}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def group(name: str, least: int, key: str = "", **fields: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {"schedulingPolicy": {"gang": {"minCount": least}}, **fields}
    if key:
        spec["schedulingConstraints"] = {"topology": [{"key": key}]}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": metadata, "spec": spec}


def outcome(objects: list[dict[str, Any]]) -> dict[str, Any]:
    case = {"kubernetes": "1.37", "featureGates": GATES, "objects": objects, "until": 4}
    return run(msgspec.convert(case, Scenario))[-1]


def racks(r: random.Random) -> dict[str, list[tuple[str, int]]]:
    found: dict[str, list[tuple[str, int]]] = {}
    for i in range(r.randint(1, 6)):
        found.setdefault(f"r{r.randint(0, 2)}", []).append((f"n{i}", r.randint(1, 4)))
    return found


@pytest.mark.parametrize("by_rack", [False, True])
def test_a_gang_is_placed_exactly_if_its_minimum_fits(by_rack: bool) -> None:
    for seed in SEEDS:
        r = random.Random(seed)
        cluster = racks(r)
        count = r.randint(1, 9)
        least = r.randint(1, count)
        objects = [node(n, cpu, rack) for rack, nodes in cluster.items() for n, cpu in nodes]
        objects += [group("g", least, "rack" if by_rack else ""), *(pod(f"g-{i}", "g") for i in range(count))]
        found = outcome(objects)["bound"]
        places = {rack: sum(cpu for _, cpu in nodes) for rack, nodes in cluster.items()}
        most = max(places.values()) if by_rack else sum(places.values())
        used = Counter(found.values())
        assert all(used[n] <= cpu for nodes in cluster.values() for n, cpu in nodes), seed
        if not by_rack:
            assert len(found) == (min(count, most) if most >= least else 0), seed
            continue
        assert len({rack for rack, nodes in cluster.items() for n, _ in nodes if n in used}) <= 1, seed
        # Which of several domains is used depends on scores; it has at least the minimum.
        assert least <= len(found) <= min(count, most) if most >= least else not found, seed


def test_a_gang_evicts_exactly_if_that_places_its_minimum_and_no_more_than_it_places() -> None:
    for seed in SEEDS:
        r = random.Random(seed)
        sizes = [r.randint(1, 3) for _ in range(r.randint(1, 4))]
        count = r.randint(1, 6)
        least = r.randint(1, count)
        objects = [node(f"n{i}", cpu, "r") for i, cpu in enumerate(sizes)]
        priorities: dict[str, int] = {}
        for i, cpu in enumerate(sizes):
            for j in range(r.randint(0, cpu)):
                name = f"v-{i}-{j}"
                priorities[name] = r.choice((0, 1, 9))
                objects.append(pod(name, "", priorities[name], f"n{i}"))
        objects += [group("g", least, priority=5), *(pod(f"g-{i}", "g", 5) for i in range(count))]
        found = outcome(objects)
        free = sum(sizes) - len(priorities)
        weak = [p for p in priorities.values() if p < 5]
        evicted = [key.removeprefix("default/") for key in found["deleted"]]
        gone = [priorities[name] for name in evicted]
        placed = len(found["bound"])
        if free + len(weak) < least:
            assert not placed and not gone, seed
            continue
        assert placed >= least, seed
        assert all(p < 5 for p in gone), seed
        used = Counter(found["bound"].values())
        for i in range(len(sizes)):
            here = sorted(p for name, p in priorities.items() if name.startswith(f"v-{i}-") and p < 5)
            left = sorted(priorities[name] for name in evicted if name.startswith(f"v-{i}-"))
            ran = sum(name.startswith(f"v-{i}-") for name in priorities)
            needed = max(0, used[f"n{i}"] - (sizes[i] - ran))
            assert len(left) == needed, (seed, "each eviction makes place for one pod on its node")
            assert left == here[: len(left)], (seed, "on each node the least important ones")


def test_a_tree_is_all_or_nothing_level_by_level() -> None:
    for seed in SEEDS:
        r = random.Random(seed)
        capacity = r.randint(1, 10)
        children = [(r.randint(1, 4), r.randint(0, 1)) for _ in range(r.randint(1, 4))]
        least = r.randint(1, len(children))
        root = {"schedulingPolicy": {"gang": {"minGroupCount": least}}}
        metadata = {"name": "root", "namespace": "default"}
        objects: list[dict[str, Any]] = [
            node("n", capacity, "r"),
            {
                "apiVersion": "scheduling.k8s.io/v1alpha3",
                "kind": "CompositePodGroup",
                "metadata": metadata,
                "spec": root,
            },
        ]
        free, succeed = capacity, 0
        for i, (size, more) in enumerate(children):
            objects.append(group(f"c{i}", size, parentCompositePodGroupName="root"))
            objects += [pod(f"c{i}-{j}", f"c{i}") for j in range(size + more)]
            if free >= size:
                free -= min(free, size + more)
                succeed += 1
        bound = Counter(key.split("/")[1].split("-")[0] for key in outcome(objects)["bound"])
        if succeed < least:
            assert not bound, seed
        assert all(bound[f"c{i}"] == 0 or bound[f"c{i}"] >= size for i, (size, _) in enumerate(children)), seed
        if succeed >= least:
            assert len(bound) >= least, seed


@pytest.mark.parametrize("size", [1, 6])
def test_placements_that_cannot_be_the_best_are_not_tried(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 12 racks the fullest is tried first; the others are tried only as long as one of them could be fuller."""
    tried: Counter[str] = Counter()
    inside = GroupAttempt._inside

    def counted(self: GroupAttempt, at: GroupId) -> GroupResult:
        tried[at.key] += 1
        return inside(self, at)

    monkeypatch.setattr(GroupAttempt, "_inside", counted)
    nodes = [node(f"n{i}-{j}", 4, f"r{i:02}") for i in range(12) for j in range(2)]
    before = [pod("old", "", on="n7-0")]
    waiting = [pod(f"p{i}", "g") for i in range(size)]
    found = outcome([*nodes, *before, group("g", size, "rack"), *waiting])
    assert {found["bound"][f"default/p{i}"].partition("-")[0] for i in range(size)} == {"n7"}
    assert tried["default/g"] == 1
