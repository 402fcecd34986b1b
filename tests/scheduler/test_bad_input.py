"""Input that contradicts itself, or is made to do harm: each has a defined, bounded outcome, and the rest goes on.

Bounds are counted in work done and in what was written, never in seconds.
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
"""A job that nothing is wrong with."""

# ---- contradictory affinities ---------------------------------------------------------------------------------

_OWN: Manifest = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "kubernetes.io/hostname"}
_OTHER: Manifest = {"labelSelector": {"matchLabels": {"app": "nobody"}}, "topologyKey": "kubernetes.io/hostname"}
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
    "a number that is none": (
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
def test_contradictory_affinities_wait_with_a_reason_and_cost_nobody_his_place(which: str, actions: str) -> None:
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
    assert reason in trial.reason("bad-0") and len(trial.told("bad")) == 1
    trial.cycle()
    assert not trial.told("bad") and not trial.evicted, "what has been said is not said again"


# ---- HyperNodes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("partial", "bound"), [(True, {"near-0", "good-0"}), (False, {"good-0"})])
def test_a_cycle_of_hyper_nodes_is_told_once_and_harms_no_other(partial: bool, bound: set[str]) -> None:
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
    assert trial.told("y") == ["cyclic dependency detected: HyperNode x is already in the ancestor chain of y"]
    trial.cycle()
    assert trial.told("y") == []


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
def test_budgets_out_of_range_are_what_their_controller_made_of_them(
    spec: Manifest, allowed: int, evicted: set[str]
) -> None:
    """The scheduler reads `status.disruptionsAllowed`; what is below 0 is no more than 0."""
    budget = {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {**spec, "selector": {"matchLabels": {"app": "x"}}},
        "status": {"disruptionsAllowed": allowed},
    }
    trial = Trial(kept_by(budget), BUDGETS, "allocate, preempt")
    trial.cycle()
    assert trial.evicted == evicted


BUDGETS = [["priority", "pdb"], ["gang", "predicates", "nodeorder"]]


def kept_by(budget: Manifest) -> Manifest:
    """A pod that a more important one could take the place of, and a budget."""
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


def test_a_budget_for_nobody_knows_whom_spares_nobody_and_stops_nothing() -> None:
    budget = {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"selector": {"matchExpressions": [{"key": "app", "operator": "Is", "values": ["x"]}]}},
        "status": {"disruptionsAllowed": 0},
    }
    trial = Trial(kept_by(budget), BUDGETS, "allocate, preempt")
    trial.cycle()
    assert trial.evicted == {"old-0"} and not trial.report.faults


# ---- priorities -----------------------------------------------------------------------------------------------


def test_priorities_at_the_ends_of_int32() -> None:
    """Neither a difference nor a sign change leaves the range: the highest goes first, and takes the lowest's place."""
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
    """Jobs of two of them are bound, each within its queue's limit."""
    queues: Manifest = {"root": {}, "parent": {"parent": "root"}}
    queues |= {f"q{i}": {"parent": "parent", "capability": {"cpu": 1}} for i in range(10_000)}
    jobs = {name: {**GOOD, "min": 1, "pods": 2, "queue": name} for name in ("q0", "q9999")}
    trial = Trial({"nodes": {"n1": {"cpu": 8}}, "queues": queues, "jobs": jobs}, plugins)
    trial.cycle()
    assert trial.bound == {"q0-0", "q9999-0"}
    assert len(trial.report.session.queues) == 10_003 and trial.report.warnings == []


@pytest.mark.parametrize("depth", [50, 2_000])
def test_queues_nested_deeply(depth: int) -> None:
    """The limit of the topmost holds for the lowest; depth is bounded by nothing but memory."""
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
def test_a_queue_in_no_place_is_told_and_holds_up_nobody(queues: Manifest, fault: str) -> None:
    text = fault + BELOW_ROOT
    leaf = max(queues)
    jobs = {"g": {**GOOD, "queue": leaf}, "h": {**GOOD, "queue": "sound"}}
    scenario = {"nodes": {"n1": {}}, "queues": {"root": {}, "sound": {}, **queues}, "jobs": jobs}
    trial = Trial(scenario, HIERARCHY)
    trial.cycle()
    assert trial.bound == {"g-0", "h-0"} and text in trial.told("a")
    trial.cycle()
    assert text not in trial.told("a"), "said once"

    trial = Trial(scenario, HIERARCHY, deviations="parity")
    trial.cycle()
    assert not trial.bound and text not in trial.told("a")
    assert trial.report.warnings == [f"plugin capacity: queue a: {fault}"]


def test_a_tree_without_a_root_grows_from_one_that_limits_nothing() -> None:
    scenario = {"nodes": {"n1": {}}, "queues": {"a": {"parent": "root"}}, "jobs": {"g": {**GOOD, "queue": "a"}}}
    trial = Trial(scenario, HIERARCHY)
    trial.simulation.drop("Queue", "root")
    trial.cycle()
    assert trial.bound == {"g-0"} and not trial.report.warnings


@pytest.mark.parametrize("plugin", ["proportion", "capacity"])
def test_capability_below_guarantee(plugin: str) -> None:
    """The capability holds, the queue is told, and what it cannot use is not kept from the others."""
    queues = {"odd": {"capability": {"cpu": 2}, "guarantee": {"resource": {"cpu": 5}}}, "q": {}}
    jobs = {name: {**GOOD, "min": 1, "pods": 6, "queue": name} for name in queues}
    scenario = {"nodes": {"n1": {"cpu": 8}}, "queues": queues, "jobs": jobs}
    trial = Trial(scenario, [["priority", "gang"], ["predicates", plugin, "nodeorder"]])
    trial.cycle()
    assert sorted(name[0] for name in trial.bound) == ["o"] * 2 + ["q"] * 6
    fields = "spec.guarantee.resource.cpu above spec.capability"
    [told] = [text for text in trial.told("odd") if "gang" not in text]
    assert told == f"{fields}: nothing above the capability is kept for the queue; change one of them"
    trial.cycle()
    assert told not in trial.told("odd")


def test_in_parity_the_guarantee_wins() -> None:
    queues = {"odd": {"capability": {"cpu": 2}, "guarantee": {"resource": {"cpu": 5}}}}
    scenario = {"nodes": {"n1": {"cpu": 8}}, "queues": queues, "jobs": {"g": {**GOOD, "pods": 6, "queue": "odd"}}}
    trial = Trial(scenario, ALLOCATE, deviations="parity")
    trial.cycle()
    assert len(trial.bound) == 5 and not trial.told("odd"), "admission would have refused the queue"


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
    assert len(trial.evicted) == 1, "the minute begins anew"
    trial.cycle()
    assert not trial.evicted


def test_clocks_that_jump_do_not_lengthen_the_wait_of_a_broken_gang() -> None:
    """Set back, the wait begins anew; set forward, it ends, once."""
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


def test_a_clock_set_back_does_not_keep_a_promise_for_ever() -> None:
    """Room is held for five minutes at most, by whatever clock."""
    promised = {"cpu": 1, "status": {"nominatedNodeName": "n1"}}
    jobs = {"new": {"min": 2, "phase": "Inqueue", "each": promised}, "good": {**GOOD, "pods": 1}}
    trial = Trial({"nodes": {"n1": {"cpu": 1}}, "jobs": jobs}, PREEMPT)
    cluster = trial.simulation.cluster
    cluster.nominations.since["default/new-0"] = trial.simulation.now + YEAR
    trial.cycle()
    assert cluster.nominations.since["default/new-0"] <= trial.simulation.now
    trial.cycle(NOMINATION_SECONDS + 1)
    assert "default/new-0" in trial.report.session.forgotten_nominations


@pytest.mark.parametrize("jump", [-50 * YEAR, YEAR])
def test_waiting_times_and_cool_downs_follow_the_clock_that_is_right_again(jump: float) -> None:
    """While the clock is wrong nobody is lost: jobs are bound as without sla, and nobody is evicted whom cdp spares."""
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
