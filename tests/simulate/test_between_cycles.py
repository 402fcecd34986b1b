"""How the cluster answers between two cycles."""

from __future__ import annotations

from typing import Any

from volcano_py.scheduler.framework.config import DEFAULT_TEXT
from volcano_py.simulate.batch import configuration
from volcano_py.simulate.cycles import Simulation

Manifest = dict[str, Any]
NODE = {"kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": 4, "memory": "8Gi", "pods": 9}}}


def pod(name: str, node: str = "", phase: str = "Pending") -> Manifest:
    containers = [{"name": "main", "resources": {"requests": {"cpu": 1}}}]
    spec = {"schedulerName": "volcano", "nodeName": node, "containers": containers}
    return {"kind": "Pod", "metadata": {"name": name}, "spec": spec, "status": {"phase": phase}}


def after_a_cycle(*manifests: Manifest) -> dict[str, Manifest]:
    simulation = Simulation(manifests)
    simulation.cycle(configuration(DEFAULT_TEXT, True))
    return {o["metadata"]["name"]: o for (kind, _), o in simulation.objects.items() if kind == "Pod"}


def test_what_has_a_node_runs_whoever_gave_it_to_it() -> None:
    found = after_a_cycle(NODE, pod("new"), pod("given", "n"), pod("ended", "n", "Succeeded"), pod("lost", "gone"))
    assert {name: p["status"]["phase"] for name, p in found.items()} == {
        "new": "Running",
        "given": "Running",
        "ended": "Succeeded",
        "lost": "Pending",
    }
    assert found["new"]["spec"]["nodeName"] == "n" and found["given"]["status"]["startTime"]


def test_a_terminating_pod_is_gone_and_does_not_start() -> None:
    leaving = pod("leaving", "n")
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert set(after_a_cycle(NODE, leaving, pod("other", "n"))) == {"other"}
