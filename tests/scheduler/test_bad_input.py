"""Contradictory or malicious input: each has a defined, bounded outcome, and everything else is scheduled.

Bounds are counted in work and writes, never in seconds.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.scheduler.trial import Manifest, Trial
from volcano_py.scheduler.model import plan
from volcano_py.scheduler.model.reported import NOMINATION_SECONDS

ALLOCATE = [["priority", "gang", "conformance"], ["predicates", "proportion", "nodeorder"]]
PREEMPT = [["priority", "gang", "conformance"], ["predicates", "nodeorder"]]
YEAR = 365 * 24 * 3600.0
GOOD = {"pods": 1, "phase": "Inqueue", "each": {"cpu": 1}}
"""A valid job."""

# ---- contradictory affinities ---------------------------------------------------------------------------------

_OWN: Manifest = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "kubernetes.io/hostname"}
_OTHER: Manifest = {"labelSelector": {"matchLabels": {"app": "none"}}, "topologyKey": "kubernetes.io/hostname"}
_IN_B = {"key": "zone", "operator": "In", "values": ["b"]}
CONTRADICTIONS: dict[str, tuple[Manifest, str]] = {
    "selector against affinity": (
        {
            "nodeSelector": {"zone": "a"},
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchExpressions": [_IN_B]}]
                    }
                }
            },
        },
        "node(s) didn't match Pod's node affinity/selector",
    ),
    "near and far from itself": (
        {
            "affinity": {
                "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_OWN, _OTHER]},
                "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_OWN]},
            }
        },
        "node(s) didn't match pod affinity rules",
    ),
    "an invalid number": (
        {
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": "zone", "operator": "Gt", "values": ["many"]}]}
                        ]
                    }
                }
            }
        },
        "node(s) didn't match Pod's node affinity/selector",
    ),
}


@pytest.mark.parametrize("which", CONTRADICTIONS)
@pytest.mark.parametrize("actions", ["allocate, preempt", "allocate, gangpreempt", "allocate, backfill"])
def test_contradictory_affinities_are_reported_and_affect_no_other_pod(which: str, actions: str) -> None:
    spec, reason = CONTRADICTIONS[which]
    scenario = {
        "nodes": {"a": {"cpu": 2, "labels": {"zone": "a"}}, "b": {"cpu": 1, "labels": {"zone": "b"}}},
        "priorities": {"high": 100, "low": 1},
        "jobs": {
            "old": {"min": 0, "phase": "Running", "priority": "low", "each": {"cpu": 1, "runsOn": "b"}},
            "bad": {"phase": "Inqueue", "priority": "high", "each": {"cpu": 1, "labels": {"app": "x"}, "spec": spec}},
            "good": GOOD,
        },
    }
    trial = Trial(scenario, PREEMPT, actions)
    trial.cycle()
    assert trial.bound == {"good-0"} and not trial.evicted
    assert reason in trial.reason("bad-0") and len(trial.messages("bad")) == 1
    trial.cycle()
    assert not trial.messages("bad") and not trial.evicted, "reports are not repeated"


# ---- HyperNodes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("partial", "bound"), [(True, {"near-0", "good-0"}), (False, {"good-0"})])
def test_a_cycle_of_hyper_nodes_is_reported_once_and_affects_no_other(partial: bool, bound: set[str]) -> None:
    scenario = {
        "nodes": {"n1": {"cpu": 1}, "n2": {"cpu": 1}},
        "hyperNodes": {
            "ok": {"tier": 1, "nodes": ["n1"]},
            "x": {"tier": 2, "hyperNodes": ["y"]},
            "y": {"tier": 2, "hyperNodes": ["x"]},
        },
        "jobs": {"near": {**GOOD, "topology": {"mode": "hard", "tier": 1}}, "good": GOOD},
    }
    plugins: list[list[Any]] = [["priority", "gang"], ["predicates", "nodeorder", "network-topology-aware"]]
    trial = Trial(scenario, plugins, deviations={"partial-topology": partial})
    trial.cycle()
    assert trial.bound == bound
    assert trial.messages("y") == ["cyclic dependency detected: HyperNode x is already in the ancestor chain of y"]
    trial.cycle()
    assert trial.messages("y") == []


# ---- disruption budgets ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "allowed", "evicted"),
    [
        ({"minAvailable": "200%"}, 0, set()),
        ({"maxUnavailable": -1}, -1, set()),
        ({"minAvailable": -1}, 2**31 - 1, {"old-0"}),
        ({"maxUnavailable": "200%"}, 1, {"old-0"}),
    ],
)
def test_budgets_out_of_range_have_the_limit_of_their_status(spec: Manifest, allowed: int, evicted: set[str]) -> None:
    """The scheduler reads `status.disruptionsAllowed`; values below 0 count as 0."""
    budget = {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {**spec, "selector": {"matchLabels": {"app": "x"}}},
        "status": {"disruptionsAllowed": allowed},
    }
    trial = Trial(scenario_with_budget(budget), BUDGETS, "allocate, preempt")
    trial.cycle()
    assert trial.evicted == evicted


BUDGETS = [["priority", "pdb"], ["gang", "predicates", "nodeorder"]]


def scenario_with_budget(budget: Manifest) -> Manifest:
    """A scenario with a pod that a more important one could preempt, and a budget."""
    return {
        "nodes": {"n1": {"cpu": 1}},
        "priorities": {"high": 100, "low": 1},
        "jobs": {
            "old": {
                "min": 1,
                "phase": "Running",
                "priority": "low",
                "each": {"cpu": 1, "runsOn": "n1", "labels": {"app": "x"}},
            },
            "new": {"phase": "Inqueue", "priority": "high", "each": {"cpu": 1}},
        },
        "objects": [budget],
    }


def test_a_budget_with_an_invalid_selector_protects_no_pod() -> None:
    budget = {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"selector": {"matchExpressions": [{"key": "app", "operator": "Is", "values": ["x"]}]}},
        "status": {"disruptionsAllowed": 0},
    }
    trial = Trial(scenario_with_budget(budget), BUDGETS, "allocate, preempt")
    trial.cycle()
    assert trial.evicted == {"old-0"} and not trial.report.faults


# ---- priorities -----------------------------------------------------------------------------------------------


def test_priorities_at_the_ends_of_int32() -> None:
    """Neither a difference nor a sign change leaves the range: the highest priority is served first, and preempts the
    lowest."""
    ends = {"top": 2**31 - 1, "mid": 0, "bottom": -(2**31)}
    jobs: Manifest = {name: {"phase": "Inqueue", "priority": name, "each": {"cpu": 1}} for name in ends}
    trial = Trial({"nodes": {"n1": {"cpu": 2}}, "priorities": ends, "jobs": jobs}, PREEMPT)
    trial.cycle()
    assert trial.bound == {"top-0", "mid-0"}
    jobs["bottom"] |= {"min": 0, "phase": "Running", "each": {"cpu": 1, "runsOn": "n1"}}
    jobs["mid"] |= {"min": 0, "phase": "Running", "each": {"cpu": 1, "runsOn": "n1"}}
    for actions in ("allocate, preempt", "allocate, gangpreempt"):
        trial = Trial({"nodes": {"n1": {"cpu": 2}}, "priorities": ends, "jobs": jobs}, PREEMPT, actions)
        trial.cycle()
        assert trial.evicted == {"bottom-0"}


# ---- queues ---------------------------------------------------------------------------------------------------

HIERARCHY = [["priority", "gang"], ["predicates", {"capacity": {"enableHierarchy": True}}, "nodeorder"]]
FAIR = [["priority", "gang"], [{"drf": {"enableHierarchy": True}}, "predicates", "nodeorder"]]


@pytest.mark.parametrize("plugins", [HIERARCHY, ALLOCATE], ids=["capacity", "proportion"])
def test_a_queue_with_ten_thousand_children(plugins: list[list[Any]]) -> None:
    """Jobs of two of the queues are bound, each within its queue's limit."""
    queues: Manifest = {"root": {}, "parent": {"parent": "root"}}
    queues |= {f"q{i}": {"parent": "parent", "capability": {"cpu": 1}} for i in range(10_000)}
    jobs = {name: {**GOOD, "min": 1, "pods": 2, "queue": name} for name in ("q0", "q9999")}
    trial = Trial({"nodes": {"n1": {"cpu": 8}}, "queues": queues, "jobs": jobs}, plugins)
    trial.cycle()
    assert trial.bound == {"q0-0", "q9999-0"}
    assert len(trial.report.session.queues) == 10_003 and trial.report.warnings == []


@pytest.mark.parametrize("depth", [50, 2_000])
def test_queues_nested_deeply(depth: int) -> None:
    """The limit of the topmost queue applies to the lowest; only the memory limits the depth."""
    queues: Manifest = {"root": {}, "l0": {"parent": "root", "capability": {"cpu": 1}}}
    queues |= {f"l{i}": {"parent": f"l{i - 1}"} for i in range(1, depth)}
    jobs = {"g": {**GOOD, "pods": 2, "queue": f"l{depth - 1}"}}
    trial = Trial({"nodes": {"n1": {"cpu": 8}}, "queues": queues, "jobs": jobs}, HIERARCHY)
    trial.cycle()
    assert trial.bound == {"g-0"}
    held = {o.name: o.allocated["cpu"] for o in trial.emitted if isinstance(o, plan.QueueStatus)}
    assert held.pop("default") == "0"
    assert len(held) == depth + 1 and set(held.values()) == {"1"}


@pytest.mark.parametrize("depth", [50, 2_000])
def test_fair_shares_nested_deeply(depth: int) -> None:
    path, weights = "/".join(["root", *(["x"] * depth)]), "/".join(["1"] * (depth + 1))
    annotations = {"volcano.sh/hierarchy": path, "volcano.sh/hierarchy-weights": weights}
    jobs = {"g": {**GOOD, "queue": "deep"}, "h": {**GOOD, "queue": "flat"}}
    scenario = {"nodes": {"n1": {}}, "queues": {"deep": {"annotations": annotations}, "flat": {}}, "jobs": jobs}
    trial = Trial(scenario, FAIR)
    trial.cycle()
    assert trial.bound == {"g-0", "h-0"}


BELOW_ROOT = ". Until then it counts as a queue below root"


@pytest.mark.parametrize(
    ("queues", "fault"),
    [
        (
            {"a": {"parent": "b"}, "b": {"parent": "a"}},
            "spec.parent: the queue is its own ancestor (a → b); change the field",
        ),
        (
            {"a": {"parent": "a"}},
            "spec.parent: the queue is its own ancestor (a); change the field",
        ),
        (
            {"a": {"parent": "lost"}},
            "spec.parent: queue lost does not exist; create it or change the field",
        ),
    ],
)
def test_a_queue_with_an_invalid_parent_is_reported_and_blocks_no_other(queues: Manifest, fault: str) -> None:
    text = fault + BELOW_ROOT
    leaf = max(queues)
    jobs = {"g": {**GOOD, "queue": leaf}, "h": {**GOOD, "queue": "sound"}}
    scenario = {"nodes": {"n1": {}}, "queues": {"root": {}, "sound": {}, **queues}, "jobs": jobs}
    trial = Trial(scenario, HIERARCHY)
    trial.cycle()
    assert trial.bound == {"g-0", "h-0"} and text in trial.messages("a")
    trial.cycle()
    assert text not in trial.messages("a"), "reported once"

    trial = Trial(scenario, HIERARCHY, deviations="parity")
    trial.cycle()
    assert not trial.bound and text not in trial.messages("a")
    assert trial.report.warnings == [f"plugin capacity: queue a: {fault}"]


def test_a_tree_without_a_root_queue_gets_one_without_limits() -> None:
    scenario = {"nodes": {"n1": {}}, "queues": {"a": {"parent": "root"}}, "jobs": {"g": {**GOOD, "queue": "a"}}}
    trial = Trial(scenario, HIERARCHY)
    trial.simulation.drop("Queue", "root")
    trial.cycle()
    assert trial.bound == {"g-0"} and not trial.report.warnings


@pytest.mark.parametrize("plugin", ["proportion", "capacity"])
def test_capability_below_guarantee(plugin: str) -> None:
    """The capability holds, the fault is reported, and the unusable part of the guarantee is available to others."""
    queues = {"odd": {"capability": {"cpu": 2}, "guarantee": {"resource": {"cpu": 5}}}, "q": {}}
    jobs = {name: {**GOOD, "min": 1, "pods": 6, "queue": name} for name in queues}
    scenario = {"nodes": {"n1": {"cpu": 8}}, "queues": queues, "jobs": jobs}
    trial = Trial(scenario, [["priority", "gang"], ["predicates", plugin, "nodeorder"]])
    trial.cycle()
    assert sorted(name[0] for name in trial.bound) == ["o"] * 2 + ["q"] * 6
    fields = "spec.guarantee.resource.cpu above spec.capability"
    [messages] = [text for text in trial.messages("odd") if "gang" not in text]
    assert messages == f"{fields}: nothing above the capability is kept for the queue; change one of them"
    trial.cycle()
    assert messages not in trial.messages("odd")


def test_in_parity_the_guarantee_wins() -> None:
    queues = {"odd": {"capability": {"cpu": 2}, "guarantee": {"resource": {"cpu": 5}}}}
    scenario = {"nodes": {"n1": {"cpu": 8}}, "queues": queues, "jobs": {"g": {**GOOD, "pods": 6, "queue": "odd"}}}
    trial = Trial(scenario, ALLOCATE, deviations="parity")
    trial.cycle()
    assert len(trial.bound) == 5 and not trial.messages("odd"), "admission would have denied the queue"


# ---- clocks ---------------------------------------------------------------------------------------------------


def test_a_clock_set_back_does_not_keep_tdm_from_ending_a_zone() -> None:
    zone = {"labels": {"volcano.sh/revocable-zone": "z"}}
    preemptable = {"annotations": {"volcano.sh/preemptable": "true"}}
    scenario = {
        "nodes": {"n1": zone},
        "jobs": {"g": {"min": 0, "pods": 3, "phase": "Running", "each": {"cpu": 1, "runsOn": "n1", **preemptable}}},
    }
    tdm = {"tdm": {"tdm.revocable-zone.z": "never", "tdm.evict.period": "1m"}}
    trial = Trial(scenario, [["gang"], [tdm, "predicates"]], "shuffle")
    trial.cycle()
    assert len(trial.evicted) == 1
    trial.cycle()
    assert not trial.evicted, "only every minute"
    trial.cycle(-YEAR)
    assert len(trial.evicted) == 1, "the minute begins again"
    trial.cycle()
    assert not trial.evicted


def test_clocks_that_jump_do_not_lengthen_the_wait_of_a_broken_gang() -> None:
    """Set back, the wait begins again; set forward, it ends, once."""
    scenario = {
        "nodes": {"n1": {"cpu": 1}},
        "jobs": {"g": {"min": 2, "tasks": {"a": {"cpu": 1, "runsOn": "n1"}, "b": {"cpu": 1}}, "phase": "Running"}},
    }
    trial = Trial(scenario, PREEMPT)
    trial.cycle()
    trial.cycle(-YEAR)
    trial.cycle(290)
    assert not trial.evicted
    trial.cycle(20)
    assert trial.evicted == {"g-a-0"}
    trial = Trial(scenario, PREEMPT)
    trial.cycle()
    trial.cycle(YEAR)
    assert trial.evicted == {"g-a-0"}
    trial.cycle(YEAR)
    assert not trial.evicted


def test_a_clock_set_back_does_not_extend_a_nomination() -> None:
    """Capacity is reserved for five minutes at most, with any clock."""
    nominated = {"cpu": 1, "status": {"nominatedNodeName": "n1"}}
    jobs = {"new": {"min": 2, "phase": "Inqueue", "each": nominated}, "good": {**GOOD, "pods": 1}}
    trial = Trial({"nodes": {"n1": {"cpu": 1}}, "jobs": jobs}, PREEMPT)
    cluster = trial.simulation.cluster
    cluster.nominations.since["default/new-0"] = trial.simulation.now + YEAR
    trial.cycle()
    assert cluster.nominations.since["default/new-0"] <= trial.simulation.now
    trial.cycle(NOMINATION_SECONDS + 1)
    assert "default/new-0" in trial.report.session.forgotten_nominations


@pytest.mark.parametrize("jump", [-50 * YEAR, YEAR])
def test_waiting_times_and_cool_downs_follow_a_corrected_clock(jump: float) -> None:
    """While the clock is wrong no job is lost: jobs are bound as without sla, and cdp protects pods."""
    started = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    cooling = {"annotations": {"volcano.sh/cooldown-time": "10m"}, "status": {"conditions": [started]}}
    scenario = {
        "nodes": {"n1": {"cpu": 1}},
        "priorities": {"high": 100, "low": 1},
        "jobs": {
            "old": {"phase": "Running", "priority": "low", "each": {"cpu": 1, "runsOn": "n1", **cooling}},
            "new": {"phase": "Inqueue", "priority": "high", "each": {"cpu": 1}},
        },
    }
    plugins = [["priority", "cdp", {"sla": {"sla-waiting-time": "1h"}}], ["gang", "predicates", "nodeorder"]]
    trial = Trial(scenario, plugins, "enqueue, allocate, preempt")
    trial.cycle(jump)
    assert trial.evicted == (set() if jump < 0 else {"old-0"})
    trial.cycle(-jump)
    trial.cycle(3600)
    assert trial.evicted == ({"old-0"} if jump < 0 else set()) and not trial.report.faults
