"""Gangs whose tasks are placed in runs get the nodes that they would get one task after the other."""

from __future__ import annotations

import json
from random import Random
from typing import Any
from unittest.mock import patch

import pytest

from volcano_py.scheduler.actions.placing import place_run
from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.framework.placement import Placement
from volcano_py.scheduler.model import plan
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.run_once import REGISTRY, CycleReport, run_once
from volcano_py.simulate.cycles import Simulation

Manifest = dict[str, Any]
ACTIONS = "enqueue, allocate, preempt, reclaim, backfill"
TIERS: dict[str, list[list[str]]] = {
    "proportion": [["priority", "gang"], ["drf", "predicates", "proportion", "nodeorder", "binpack"]],
    "capacity": [["priority", "gang"], ["drf", "predicates", "capacity", "nodeorder", "resource-strategy-fit"]],
    "spread": [["gang"], ["predicates", "proportion", "nodeorder", "pdb"]],
    "without predicates": [["gang"], ["drf", "proportion", "nodeorder", "binpack"]],
    "no minimum": [["priority"], ["predicates", "nodeorder", "binpack"]],
}


def objects(random: Random) -> list[Manifest]:
    """Nodes of some shapes, partly used, and gangs of one or two roles; the capacity is not sufficient for all."""
    made: list[Manifest] = []
    for i in range(random.randint(1, 20)):
        have = {"cpu": str(random.choice((4, 8, 16))), "memory": f"{random.choice((16, 32))}Gi", "pods": "12"}
        if random.random() < 0.3:
            have["nvidia.com/gpu"] = "8"
        taints = [{"key": "slow", "effect": "PreferNoSchedule"}] if random.random() < 0.02 else []
        labels = {"kubernetes.io/hostname": f"n{i}", "zone": random.choice("xy")}
        metadata = {"name": f"n{i}", "labels": labels}
        made.append({"kind": "Node", "metadata": metadata, "spec": {"taints": taints}, "status": {"allocatable": have}})
    for q in "ab":
        spec: Manifest = {"weight": random.randint(1, 3)}
        if random.random() < 0.5:
            spec["capability"] = {"cpu": str(random.randint(5, 60))}
        made.append({"kind": "Queue", "metadata": {"name": q}, "spec": spec, "status": {"state": "Open"}})
    shapes = [shape(random) for _ in range(3)]
    for g in range(random.randint(1, 6)):
        made += gang(f"g{g}", random, shapes, "Running" if random.random() < 0.2 else "Pending")
    return made


def shape(random: Random) -> Manifest:
    requests = {"cpu": random.choice(("250m", "500m", "1", "2")), "memory": random.choice(("512Mi", "1Gi", "3Gi"))}
    if random.random() < 0.2:
        requests["nvidia.com/gpu"] = "1"
    spec: Manifest = {"schedulerName": "volcano", "containers": [{"name": "c", "resources": {"requests": requests}}]}
    if random.random() < 0.2:
        spec["nodeSelector"] = {"zone": "x"}
    return spec


def gang(name: str, random: Random, shapes: list[Manifest], phase: str) -> list[Manifest]:
    size = random.choice((3, 8, 15, 30))
    roles = random.choice((1, 1, 2))
    minimum = size if random.random() < 0.5 else random.randint(1, size)
    spec: Manifest = {"minMember": minimum, "queue": random.choice("ab")}
    if roles == 2 and random.random() < 0.5:
        spec["minTaskMember"] = {"r0": min(2, size), "r1": 1}
    made: list[Manifest] = [
        {"kind": "PodGroup", "metadata": {"name": name, "namespace": "d"}, "spec": spec, "status": {"phase": phase}}
    ]
    of_role = [random.choice(shapes) for _ in range(roles)]
    for i in range(size):
        metadata = {
            "name": f"{name}-{i}",
            "namespace": "d",
            "uid": f"{name}-{i}",
            "annotations": {"scheduling.k8s.io/group-name": name, "volcano.sh/task-spec": f"r{i % roles}"},
        }
        status: Manifest = {"phase": "Pending"}
        if random.random() < 0.02:
            status["nominatedNodeName"] = "n0"
        made.append({"kind": "Pod", "metadata": metadata, "spec": of_role[i % roles], "status": status})
    return made


def run_history(seed: int, tiers: str) -> tuple[list[Any], int]:
    """The decisions of three cycles, with the sums of all nodes, jobs and queues after each; and how many tasks were
    placed in runs."""
    document = {"actions": ACTIONS, "tiers": [{"plugins": [{"name": p} for p in tier]} for tier in TIERS[tiers]]}
    conf = load(json.dumps(document), REGISTRY.actions)
    simulation = Simulation(objects(Random(seed)), seed=seed)
    assert not simulation.rejected, simulation.rejected
    in_runs = 0
    allocate_run = place_run.Statement.allocate_run

    def counting(statement: Any, job: Any, tasks: list[Any], *rest: Any) -> bool:
        nonlocal in_runs
        in_runs += len(tasks)
        return allocate_run(statement, job, tasks, *rest)

    history: list[Any] = []
    with patch.object(place_run.Statement, "allocate_run", counting):
        for _ in range(3):
            cycle = simulation.cycle(conf)
            assert not cycle.faults, cycle.faults
            history.append(
                (cycle.bound, cycle.pipelined, cycle.evicted, cycle.phases, cycle.conditions, cycle.allocated)
            )
    return history, in_runs


def compare(seeds: range, tiers: str, least: int) -> None:
    placed = 0
    for seed in seeds:
        history, in_runs = run_history(seed, tiers)
        placed += in_runs
        with patch.object(place_run, "SHORTEST", 10**9):
            assert history == run_history(seed, tiers)[0], f"seed {seed}"
    assert placed >= least * len(seeds), "too few tasks are placed in runs"


@pytest.mark.parametrize("tiers", TIERS)
def test_a_few_clusters(tiers: str) -> None:
    compare(range(8), tiers, least=0 if tiers == "no minimum" else 10)


@pytest.mark.slow
@pytest.mark.parametrize("tiers", TIERS)
def test_many_clusters(tiers: str) -> None:
    compare(range(100, 400), tiers, least=0 if tiers == "no minimum" else 10)


def large_gang(nodes: int, pods: int, **pod_spec: Any) -> Cluster:
    have = {"cpu": "32", "memory": "256Gi", "pods": "110"}
    spec = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}], **pod_spec}
    made: list[Manifest] = [
        {"kind": "Node", "metadata": {"name": f"n{i}"}, "status": {"allocatable": have}} for i in range(nodes)
    ]
    made.append({"kind": "Queue", "metadata": {"name": "default"}, "spec": {"weight": 1}, "status": {"state": "Open"}})
    group = {"name": "g", "namespace": "d"}
    made.append({"kind": "PodGroup", "metadata": group, "spec": {"minMember": pods}, "status": {"phase": "Inqueue"}})
    for i in range(pods):
        metadata = {"name": f"g-{i}", "namespace": "d", "annotations": {"scheduling.k8s.io/group-name": "g"}}
        made.append({"kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Pending"}})
    return Simulation(made).cluster


def decide(model: Cluster) -> CycleReport:
    tiers = [{"plugins": [{"name": p} for p in tier]} for tier in TIERS["proportion"]]
    return run_once(model, load(json.dumps({"actions": "allocate", "tiers": tiers}), REGISTRY.actions), 1e9)


def test_a_gang_costs_few_passes() -> None:
    report = decide(large_gang(200, 1000))
    assert report.bound == 1000
    assert report.counters["vector_passes"] <= 100  # one by one it would be a column for each task
    assert report.counters["columns_refreshed"] == 0


def test_a_gang_without_rules_for_runs_is_evaluated_once() -> None:
    spread = {
        "maxSkew": 5,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "g"}},
    }
    model = large_gang(6, 40, topologySpreadConstraints=[spread])
    for node in model.nodes.objects:
        node.metadata.labels = {"zone": "x"}
    with patch.object(Placement, "best_for_run", autospec=True, side_effect=Placement.best_for_run) as looks:
        assert decide(model).bound == 40
    assert looks.call_count == 1


def test_binds_that_are_assumed_together_count_as_those_assumed_one_by_one() -> None:
    together, alone = large_gang(5, 40), large_gang(5, 40)
    binds = [o for o in decide(together).plan if isinstance(o, plan.Bind)]
    assert len(binds) == 40
    for bind in binds:
        alone.assume(bind)
    for name in ("idle", "used", "kube_requested", "kube_nonzero", "kube_pods", "releasing", "foreign"):
        rows = getattr(together.nodes.numbers, name) == getattr(alone.nodes.numbers, name)
        assert rows.all(), name
    assert together.statuses == alone.statuses
    assert together.jobs["d/g"].allocated == alone.jobs["d/g"].allocated
    assert together.jobs["d/g"].counts == alone.jobs["d/g"].counts
    assert {n: set(t) for n, t in together.on_node.items()} == {n: set(t) for n, t in alone.on_node.items()}
