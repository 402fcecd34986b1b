"""Native gangs in profiles of Kubernetes 1.37: one attempt of a group of 1,000 pods, and preemption by a group.

All figures are processor time, so that what else the machine does counts little.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from benchmarks.figures import show
from volcano_py.api import core
from volcano_py.api.codec import from_manifest
from volcano_py.api.gang import PodGroup
from volcano_py.scheduler.model.cluster import Cluster as Model
from volcano_py.scheduler.profiles.cluster_events import GroupChanged, PodChanged
from volcano_py.scheduler.profiles.configuration import load
from volcano_py.scheduler.profiles.decisions import BindPod, EvictPod
from volcano_py.scheduler.profiles.release import V1_37
from volcano_py.scheduler.profiles.scheduler import PodScheduler

ROWS = (
    ("attempt_s", "a group of 1,000 equal pods on 5,000 nodes", "s"),
    ("shapes_s", "the same, of 20 shapes", "s"),
    ("racks_s", "the same with a topology key, 20 racks", "s"),
    ("crowded_s", "the same, half of the racks too full for the group", "s"),
    ("rejected_s", "the same, all of the racks", "s"),
    ("late_s", "a group of 1,000 pods of which the last does not fit, with no victims", "s"),
    ("preemption_s", "a group of 100 evicts on 1,000 nodes with 10,000 pods", "s"),
    ("preemption_apart_s", "the same, the pods of the group on different nodes", "s"),
    ("preemption_units_s", "the same, half of the pods in gangs evicted as a whole", "s"),
)
TARGETS = {
    "attempt_s": ("<=", 0.2),
    "shapes_s": ("<=", 0.2),
    "racks_s": ("<=", 0.2),
    "crowded_s": ("<=", 0.2),
    "rejected_s": ("<=", 0.2),
    "late_s": ("<=", 0.2),
    "preemption_s": ("<=", 2.0),
    "preemption_apart_s": ("<=", 2.0),
    "preemption_units_s": ("<=", 2.0),
}
RACK = "example.com/rack"
GATES = V1_37.gates | {"GenericWorkload", "TopologyAwareWorkloadScheduling", "CompositePodGroup"}


def attempt(nodes: int, pods: int, shapes: int = 1, *, key: str = "", full: int = 0, last: int = 0) -> float:
    """Seconds of one attempt of a group. `full`: how many of the 20 racks have room for three quarters of the group
    only. `last`: thousandths of CPU of the last pod."""
    scheduler = _scheduler(nodes)
    _add_group(scheduler, "gang", pods, key=key)
    for i in range(nodes):
        if i % 20 < full:
            left = 750 * pods // (nodes // 20)
            _add(scheduler, _pod(f"there-{i}", "", cpu=64000 - left - i % 20, node=f"n{i:05}"))
    for i in range(pods):
        cpu = last if last and i == pods - 1 else 1000 + 10 * (i % shapes)
        _add(scheduler, _pod(f"gang-{i:04}", "gang", cpu=cpu))
    seconds, bound, _ = _attempt(scheduler)
    assert bound == (0 if last or full == 20 else pods)
    return seconds


def preemption(nodes: int, running: int, pods: int, *, whole: int = 0, apart: bool = False) -> float:
    """Seconds until a group has evicted enough of ten pods on each node. `whole`: the size of gangs that are evicted as
    a whole, of which half of the pods are members; 0: none. `apart`: its pods must be on different nodes."""
    scheduler = _scheduler(nodes)
    model = scheduler.cluster.model
    for i in range(10):
        model.upsert("PodDisruptionBudget", _budget(i))
    for i in range(running):
        of = i // whole if whole and i % 2 else -1
        if of >= 0 and f"default/low-{of}" not in scheduler.cluster.groups:
            _add_group(scheduler, f"low-{of}", 1, priority=of % 5, whole=True)
        low = _pod(
            f"low-{i:05}",
            f"low-{of}" if of >= 0 else "",
            cpu=6000,
            priority=of % 5 if of >= 0 else i % 5,
            node=f"n{i % nodes:05}",
            app=f"a{i % 10}",
        )
        _add(scheduler, low)
    _add_group(scheduler, "high", pods, priority=100)
    for i in range(pods):
        _add(scheduler, _pod(f"high-{i:04}", "high", cpu=16000, priority=100, app="high", apart=apart))
    seconds, _, evicted = _attempt(scheduler)
    assert evicted
    return seconds


def _attempt(scheduler: PodScheduler) -> tuple[float, int, int]:
    """The seconds of the first attempt, and how many pods it binds and evicts."""
    assert len(scheduler.cluster.columns)  # before the clock starts
    gc.collect()
    gc.freeze()  # as the cache does
    begun = time.process_time()
    found = scheduler.attempt(1.0) or []
    seconds = time.process_time() - begun
    gc.unfreeze()
    return seconds, sum(isinstance(d, BindPod) for d in found), sum(isinstance(d, EvictPod) for d in found)


def _scheduler(nodes: int) -> PodScheduler:
    model = Model()
    for i in range(nodes):
        labels = {"kubernetes.io/hostname": f"n{i}", RACK: f"r{i % 20}"}
        capacity = {"cpu": "64", "memory": "256Gi", "pods": "110"}
        manifest = {"metadata": {"name": f"n{i:05}", "labels": labels}, "status": {"allocatable": capacity}}
        model.upsert("Node", from_manifest(core.Node, {"apiVersion": "v1", "kind": "Node", **manifest}))
    return PodScheduler(load({}, GATES, release=V1_37), GATES, model)


def _add(scheduler: PodScheduler, pod: core.Pod) -> None:
    scheduler.cluster.model.upsert("Pod", pod)
    scheduler.handle(PodChanged(None, scheduler.cluster.info(pod)), 0.0)


def _add_group(
    scheduler: PodScheduler, name: str, least: int, *, key: str = "", priority: int = 0, whole: bool = False
) -> None:
    spec: dict[str, Any] = {"schedulingPolicy": {"gang": {"minCount": least}}, "priority": priority}
    if key:
        spec["schedulingConstraints"] = {"topology": [{"key": key}]}
    if whole:
        spec["disruptionMode"] = {"all": {}}
    manifest = {"metadata": {"name": name, "namespace": "default", "uid": name}, "spec": spec}
    kind = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup"}
    scheduler.handle(
        GroupChanged(f"default/{name}", from_manifest(PodGroup, {**kind, **manifest})),
        0.0,
    )


def _pod(
    name: str, group: str, *, cpu: int, priority: int = 0, node: str = "", app: str = "gang", apart: bool = False
) -> core.Pod:
    requests = {"cpu": f"{cpu}m", "memory": "128Mi"}
    containers = [{"name": "main", "image": "busybox", "resources": {"requests": requests}}]
    spec: dict[str, Any] = {
        "schedulerName": "default-scheduler",
        "priority": priority,
        "nodeName": node,
        "containers": containers,
    }
    if group:
        spec["schedulingGroup"] = {"podGroupName": group}
    if apart:
        term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": app}}}
        spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    metadata = {"name": name, "namespace": "default", "uid": name, "labels": {"app": app}}
    manifest: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    if node:
        manifest["status"] = {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}
    pod: core.Pod = from_manifest(core.Pod, manifest)
    return pod


def _budget(i: int) -> core.PodDisruptionBudget:
    manifest = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": f"b{i}", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": f"a{i}"}}},
        "status": {"disruptionsAllowed": i % 3},
    }
    budget: core.PodDisruptionBudget = from_manifest(core.PodDisruptionBudget, manifest)
    return budget


@click.command()
@click.option("--runs", type=click.IntRange(1), default=3, show_default=True, help="Of each; the best one counts.")
@click.option("--json", "out", type=click.Path(path_type=Path, dir_okay=False), help="Write the figures to this file.")
def native_groups(runs: int, out: Path | None) -> None:
    """Measure one attempt of a large native gang, and preemption by one, as processor time."""
    # The first attempt of a process loads code: it does not count.
    attempt(100, 10)
    measures: dict[str, Callable[[], float]] = {
        "attempt_s": lambda: attempt(5000, 1000),
        "shapes_s": lambda: attempt(5000, 1000, 20),
        "racks_s": lambda: attempt(5000, 1000, key=RACK),
        "crowded_s": lambda: attempt(5000, 1000, key=RACK, full=10),
        "rejected_s": lambda: attempt(5000, 1000, key=RACK, full=20),
        "late_s": lambda: attempt(5000, 1000, last=65000),
        "preemption_s": lambda: preemption(1000, 10_000, 100),
        "preemption_apart_s": lambda: preemption(1000, 10_000, 100, apart=True),
        "preemption_units_s": lambda: preemption(1000, 10_000, 100, whole=10),
    }
    figures = {name: min(measure() for _ in range(runs)) for name, measure in measures.items()}
    show(figures, ROWS, TARGETS, {}, out)
