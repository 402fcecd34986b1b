"""The same cluster results in the same decisions, for any order of its objects and any hash seed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from random import Random
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as s

from tests.strategies import Manifest, clusters, plugin_tiers
from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.run_once import REGISTRY
from volcano_py.simulate.cycles import Simulation
from volcano_py.testing.table import configuration

ACTIONS = "enqueue, allocate, preempt, reclaim, backfill"


def decide(manifests: list[Manifest], conf: str, cycles: int = 3) -> list[Any]:
    simulation = Simulation(manifests, raw=True, seed=5)
    loaded = load(conf, REGISTRY.actions)
    results = [msgspec.to_builtins(simulation.cycle(loaded)) for _ in range(cycles)]
    for r in results:
        assert r.pop("faults") == []
        r["evicted"].sort()
    return results


@settings(max_examples=30, deadline=None)
@given(clusters(), plugin_tiers(), s.integers(0, 1000))
def test_the_order_of_objects_has_no_influence(manifests: list[Manifest], tiers: list[list[str]], seed: int) -> None:
    conf = configuration({"actions": ACTIONS, "plugins": tiers})
    shuffled = list(manifests)
    Random(seed).shuffle(shuffled)
    assert decide(manifests, conf) == decide(shuffled, conf)


def test_starving_jobs_of_a_queue_come_in_any_order() -> None:
    """preempt serves the starving jobs of a queue one after another; their order must not depend on creation order."""
    have = {"cpu": "1", "memory": "1Gi", "pods": "1"}
    objects: list[Manifest] = [{"kind": "Queue", "metadata": {"name": "default"}, "spec": {"weight": 1}}]
    objects += [{"kind": "Node", "metadata": {"name": f"n{i}"}, "status": {"allocatable": have}} for i in range(2)]
    first = None
    for name, minimum, requests in (("a", 3, {"cpu": "100m"}), ("b", 1, {}), ("c", 1, {"cpu": "3"})):
        spec = {"minMember": minimum, "queue": "default"}
        status = {"phase": "Inqueue"}
        metadata: Manifest = {"name": name, "namespace": "default", "uid": name}
        objects.append({"kind": "PodGroup", "metadata": metadata, "spec": spec, "status": status})
        for i in range(3):
            pod = {"name": f"{name}-task-{i}", "namespace": "default", "uid": f"{name}-{i}"}
            metadata = {**pod, "annotations": {"scheduling.k8s.io/group-name": name}}
            containers = [{"name": "c", "resources": {"requests": requests}}]
            spec = {"schedulerName": "volcano", "containers": containers}
            objects.append({"kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Pending"}})
    tiers = [["priority", "gang", "conformance"], ["drf", "predicates", "nodeorder"]]
    conf = configuration({"actions": ACTIONS, "plugins": tiers})
    for seed in range(20):
        shuffled = list(objects)
        Random(seed).shuffle(shuffled)
        decided = decide(shuffled, conf)
        first = first or decided
        assert decided == first
    assert first is not None and first[0]["bound"]


def test_the_hash_seed_has_no_influence() -> None:
    objects: list[Manifest] = []
    for i in range(6):
        have = {"cpu": str(2 + i % 3), "memory": "8Gi", "pods": "9"}
        objects.append({"kind": "Node", "metadata": {"name": f"n{i}"}, "status": {"allocatable": have}})
    for j in range(8):
        group = {"metadata": {"name": f"g{j}"}, "spec": {"minMember": 2, "queue": f"q{j % 3}"}}
        objects.append({"kind": "PodGroup", **group})
        for i in range(3):
            container = {"name": "c", "resources": {"requests": {"cpu": f"{300 + 100 * (j % 4)}m"}}}
            metadata = {"name": f"g{j}-task-{i}", "annotations": {"scheduling.k8s.io/group-name": f"g{j}"}}
            objects.append({"kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}})
    objects += [{"kind": "Queue", "metadata": {"name": f"q{i}"}, "spec": {"weight": i + 1}} for i in range(3)]
    conf = configuration({"actions": ACTIONS})
    case = json.dumps({"id": "x", "conf": conf, "cycles": 3, "objects": objects})
    outputs = set()
    for seed in ("0", "1", "12345"):
        done = subprocess.run(
            [sys.executable, "-m", "volcano_py.cli.main", "simulate", "run", "--jsonl"],
            input=case,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
        )
        outputs.add(done.stdout)
    assert len(outputs) == 1
    assert len(json.loads(outputs.pop())["cycles"][0]["bound"]) > 5
