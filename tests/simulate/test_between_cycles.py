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


def test_evicted_pods_are_recreated_on_request() -> None:
    """Two equal queues: the lender's newest pod is evicted, recreated, and stays pending."""
    queues = [{"kind": "Queue", "metadata": {"name": n}, "spec": {"deserved": {"cpu": 2}}} for n in ("lender", "owner")]
    jobs: list[Manifest] = []
    for name, queue, node in (("a", "lender", "n"), ("b", "lender", "n"), ("w", "owner", "")):
        jobs.append({"kind": "PodGroup", "metadata": {"name": name}, "spec": {"minMember": 1, "queue": queue}})
        made = pod(f"{name}-0", node, "Running" if node else "Pending")
        made["metadata"] |= {"uid": name, "annotations": {"scheduling.k8s.io/group-name": name}}
        made["spec"]["containers"][0]["resources"]["requests"]["cpu"] = 2
        jobs.append(made)
    plugins = "{plugins: [{name: gang}, {name: predicates}, {name: capacity}]}"
    text = f"actions: 'enqueue, allocate, reclaim'\ntiers: [{plugins}]"
    for recreates in (False, True):
        simulation = Simulation([NODE, *queues, *jobs], recreates=recreates)
        results = [simulation.cycle(configuration(text, False)) for _ in range(6)]
        assert [key for r in results for key in r.evicted] == ["default/b-0"]
        assert [key for r in results for key in r.bound] == ["default/w-0"]
        again = simulation.objects.get(("Pod", "default/b-0"))
        assert (again is not None) is recreates
        if again is not None:
            assert again["status"]["phase"] == "Pending" and again["metadata"]["uid"] != "b"
