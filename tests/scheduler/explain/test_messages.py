"""The messages that report why a gang is pending."""

from __future__ import annotations

from typing import Any

from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.model import plan
from volcano_py.scheduler.run_once import REGISTRY, run_once
from volcano_py.simulate.cycles import Simulation
from volcano_py.testing.table import configuration, manifests

SCENARIO: dict[str, Any] = {
    "nodes": {"n1": {"cpu": 2}},
    "jobs": {"p": {"min": 3, "pods": 3, "each": {"cpu": 1}}},
    "conf": {"plugins": [["priority", "gang"], ["predicates", "nodeorder"]], "deviations": "parity"},
}


def emitted(scenario: dict[str, Any]) -> list[plan.Operation]:
    found: list[plan.Operation] = []
    simulation = Simulation(manifests(scenario))
    conf = load(configuration(scenario["conf"]), REGISTRY.actions)
    run_once(simulation.cluster, conf, simulation.now, emit=found.extend)
    return found


def test_a_gang_of_three_where_two_fit_reports_the_missing_resource() -> None:
    operations = emitted(SCENARIO)
    message = (
        "pod group is not ready, 3 Pending, 3 minAvailable; Pending: 1 Unschedulable, 2 Schedulable. "
        "Origin reason is p-2: 0/1 nodes are unavailable: 1 Insufficient cpu."
    )
    status = next(o for o in operations if isinstance(o, plan.PodGroupStatus))
    condition = status.status["conditions"][0]
    assert (condition["type"], condition["reason"]) == ("Unschedulable", "NotEnoughResources")
    assert condition["message"] == f"1/3 tasks in gang unschedulable: {message}"
    event = next(o for o in operations if isinstance(o, plan.Event))
    assert (event.type, event.reason, event.message) == (
        "Warning",
        "Unschedulable",
        f"3/3 tasks in gang unschedulable: {message}",
    )
    pods = {o.name: (o.reason, o.message) for o in operations if isinstance(o, plan.PodCondition)}
    possible = "can possibly be assigned to n1, once minAvailable is satisfied"
    assert pods == {
        "p-0": ("Schedulable", f"Pod default/p-0 {possible}"),
        "p-1": ("Schedulable", f"Pod default/p-1 {possible}"),
        "p-2": ("Unschedulable", "0/1 nodes are unavailable: 1 Insufficient cpu."),
    }


def test_a_gang_that_preempts_reports_why_it_did_not_fit() -> None:
    scenario = {
        "nodes": {"n1": {"cpu": 1}},
        "priorities": {"high": 100},
        "jobs": {
            "low": {"min": 0, "pods": 1, "phase": "Running", "each": {"cpu": 1, "runsOn": "n1"}},
            "high": {"min": 1, "pods": 1, "phase": "Inqueue", "priority": "high", "each": {"cpu": 1}},
        },
        "conf": {**SCENARIO["conf"], "actions": "enqueue, allocate, preempt"},
    }
    statuses = {o.name: o.status for o in emitted(scenario) if isinstance(o, plan.PodGroupStatus)}
    assert statuses["high"]["conditions"][0]["message"] == (
        "1/1 tasks in gang unschedulable: pod group is not ready, 1 Pipelined, 1 minAvailable. "
        "Origin reason is high-0: 0/1 nodes are unavailable: 1 Insufficient cpu."
    )


def test_unchanged_reports_are_not_written_again() -> None:
    simulation = Simulation(manifests(SCENARIO))
    conf = load(configuration({**SCENARIO["conf"], "deviations": {}}), REGISTRY.actions)
    found: list[plan.Operation] = []
    for _ in range(3):
        found.clear()
        run_once(simulation.cluster, conf, simulation.now, emit=found.extend)
    assert found == []


BIG = ("p-big-0", "p-big-1")


def messages_of_pods(deviations: object) -> dict[str, str]:
    """The messages of an elastic job's pending pods: none of them fits, and only the first of the role is tried."""
    scenario = {
        "nodes": {"n1": {"cpu": 1}},
        "jobs": {
            "p": {
                "min": 2,
                "minTask": {"big": 0, "small": 2},
                "tasks": {"big": {"pods": 2, "cpu": 2}, "small": {"pods": 2, "cpu": "600m"}},
            }
        },
        "conf": {**SCENARIO["conf"], "deviations": deviations},
    }
    return {o.name: o.message for o in emitted(scenario) if isinstance(o, plan.PodCondition)}


def test_a_pod_that_is_not_tried_gets_the_reason_of_its_role() -> None:
    insufficient = "0/1 nodes are unavailable: 1 Insufficient cpu."
    assert {name: text for name, text in messages_of_pods({}).items() if "big" in name} == dict.fromkeys(
        BIG, insufficient
    )
    skipped = "Task p-big-1 with role spec big has already predicated failed, skip"
    assert [text for name, text in messages_of_pods("parity").items() if "big" in name] == [insufficient, skipped]


def test_a_plugin_in_two_tiers_counts_a_node_once() -> None:
    scenario = {
        "nodes": {"n1": {"cpu": 2, "pods": 1}},
        "jobs": {
            "old": {"min": 1, "pods": 1, "phase": "Running", "each": {"cpu": 1, "runsOn": "n1"}},
            "p": {"min": 1, "pods": 1, "phase": "Inqueue", "each": {}},
        },
        "conf": {"plugins": [["gang", "predicates"], ["predicates"]]},
    }
    [message] = [o.message for o in emitted(scenario) if isinstance(o, plan.PodCondition)]
    assert message == "0/1 nodes are unavailable: 1 node(s) pod number exceeded."
