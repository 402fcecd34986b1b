"""Binding cycles: Permit, results of bindings, and changes of pods and nodes meanwhile."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.scheduler.profiles.trial import Trial, node, pod
from volcano_py.scheduler.profiles.cluster_events import (
    BindEnded,
    NodeChanged,
    PermitAllowed,
    PermitRejected,
    PodChanged,
)
from volcano_py.scheduler.profiles.decisions import SCHEDULER_ERROR, BindPod, EvictPod, Fail
from volcano_py.scheduler.profiles.plugin_api.cycle_state import CycleState
from volcano_py.scheduler.profiles.plugin_api.events import PODS, ActionType, Interest
from volcano_py.scheduler.profiles.plugin_api.extension_points import Permit, Reserve
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.plugin_api.status import SUCCESS, Code, Status, unschedulable

CALLS: list[str] = []


class Hold(Permit):
    """Lets every pod with the label `hold` wait for its number of seconds; rejects those with `deny`."""

    name = "Hold"

    def permit(self, state: CycleState, pod: PodInfo, node: str) -> tuple[Status, float]:
        if "deny" in pod.labels:
            return unschedulable("denied"), 0
        if "hold" in pod.labels:
            return Status(Code.WAIT), float(pod.labels["hold"])
        return SUCCESS, 0

    def interests(self) -> tuple[Interest, ...]:
        return (Interest(PODS, ActionType.DELETE),)


class HoldToo(Hold):
    name = "HoldToo"


class Record(Reserve):
    """Records its calls."""

    name = "Record"

    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        CALLS.append(f"{self.name} reserve {pod.name} {node}")
        return SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        CALLS.append(f"{self.name} unreserve {pod.name} {node}")


class Record2(Record):
    name = "Record2"


class RejectReserve(Record):
    name = "RejectReserve"

    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        super().reserve(state, pod, node)
        return unschedulable("full")


@pytest.fixture
def trial() -> Iterator[Trial]:
    CALLS.clear()
    t = Trial(Record, Record2, Hold)
    t.node("n1", cpu=2)
    yield t
    t.check()


def waiting(t: Trial) -> list[str]:
    return [w.pod.name for w in t.scheduler.waiting_pods()]


def test_a_waiting_pod_keeps_its_capacity_and_others_continue(trial: Trial) -> None:
    trial.pod("a", labels={"hold": "60"})
    trial.pod("b")
    trial.pod("c")
    decided = trial.run()
    assert [d.pod.name for d in decided if isinstance(d, BindPod)] == ["b"]
    assert trial.messages() == {"c": trial.messages()["c"]}
    assert "Insufficient cpu" in trial.messages()["c"]
    assert waiting(trial) == ["a"]
    trial.check()
    assert trial.scheduler.next_deadline() == 30
    assert trial.scheduler.handle(PermitAllowed("default/a", "Hold"), 1) == [BindPod(trial.pods["default/a"], "n1")]


def test_a_wait_that_ends_frees_the_capacity(trial: Trial) -> None:
    trial.pod("a", cpu=2, labels={"hold": "5"})
    trial.run()
    assert trial.tick(4) == []
    decided = trial.tick()
    assert isinstance(decided[0], Fail)
    assert decided[0].message == "rejected due to timeout after waiting 5s at plugin Hold"
    assert CALLS[2:] == ["Record2 unreserve a n1", "Record unreserve a n1"]
    assert waiting(trial) == []


def test_waits_are_at_most_fifteen_minutes(trial: Trial) -> None:
    trial.pod("a", labels={"hold": "100000"})
    trial.run()
    assert trial.scheduler.waiting_pods()[0].deadlines == {"Hold": 900}


def test_the_shortest_open_wait_decides_and_all_plugins_must_allow() -> None:
    t = Trial(Hold, HoldToo)
    t.node("n1")
    t.pod("a", labels={"hold": "5"})
    t.run()
    assert t.scheduler.handle(PermitAllowed("default/a", "Hold"), 1) == []
    assert t.scheduler.handle(PermitAllowed("default/a", "Hold"), 1) == []
    assert t.scheduler.waiting_pods()[0].deadlines == {"HoldToo": 5}
    assert len(t.scheduler.handle(PermitAllowed("default/a", "HoldToo"), 1)) == 1
    t.check()


def test_a_rejected_pod_is_not_tried_before_an_event_of_the_plugin(trial: Trial) -> None:
    trial.pod("a", labels={"hold": "60"})
    trial.pod("other", node="n1")
    trial.run()
    decided = trial.scheduler.handle(PermitRejected("default/a", "Hold", "no more"), 1)
    assert decided == [Fail(trial.pods["default/a"], "no more")]
    assert trial.scheduler.attempt(1) is None
    trial.delete("other")
    trial.tick(3)
    trial.run()
    assert waiting(trial) == ["a"]


def test_an_event_while_the_pod_waits_counts(trial: Trial) -> None:
    trial.pod("a", labels={"hold": "60"})
    trial.pod("other", node="n1")
    trial.run()
    trial.delete("other")
    trial.scheduler.handle(PermitRejected("default/a", "Hold", "no more"), 0)
    trial.tick(2)
    trial.run()
    assert waiting(trial) == ["a"]


def test_deny_frees_the_capacity_immediately(trial: Trial) -> None:
    trial.pod("a", cpu=2, labels={"deny": ""})
    trial.pod("b", cpu=2)
    assert trial.settle() == {"b": "n1"}
    assert trial.messages()["a"] == "denied"


def test_a_rejection_at_reserve_undoes_all_plugins_in_reverse() -> None:
    CALLS.clear()
    t = Trial(Record, RejectReserve, Record2)
    t.node("n1")
    t.pod("a")
    t.run()
    assert ["Record reserve a n1", "RejectReserve reserve a n1"] + [
        f"{name} unreserve a n1" for name in ("Record2", "RejectReserve", "Record")
    ] == CALLS
    assert t.messages() == {"a": "full"}
    t.check()


def test_a_failed_binding_is_undone_and_retried(trial: Trial) -> None:
    trial.pod("a", cpu=2)
    trial.pod("b", cpu=2)
    trial.run()
    assert trial.scheduler.attempt(0) is None
    decided = trial.scheduler.handle(BindEnded("default/a", "conflict"), 0)
    assert decided == [Fail(trial.pods["default/a"], "binding rejected: conflict", SCHEDULER_ERROR)]
    trial.check()
    trial.tick(2)
    assert trial.settle() == {"b": "n1"}


def test_a_result_for_a_deleted_pod_of_the_same_name_is_ignored(trial: Trial) -> None:
    trial.pod("a")
    trial.run()
    trial.delete("a")
    trial.pod("a", uid="second")
    trial.run()
    assert trial.scheduler.handle(BindEnded("default/a", "conflict", "a"), 0) == []
    assert trial.scheduler.handle(BindEnded("default/a", "", "second"), 0) == []
    trial.scheduler.handle(PodChanged(trial.pods["default/a"], trial.pods["default/a"].on("n1")), 0)
    trial.pods["default/a"] = trial.pods["default/a"].on("n1")


@pytest.mark.parametrize("labels", [{}, {"hold": "60"}])
def test_a_pod_that_is_deleted_meanwhile_leaves_nothing(trial: Trial, labels: dict[str, str]) -> None:
    trial.pod("a", cpu=2, labels=labels)
    trial.run()
    trial.pod("b", cpu=2)
    trial.delete("a")
    assert CALLS[2:4] == ["Record2 unreserve a n1", "Record unreserve a n1"]
    trial.check()
    assert trial.settle() == {"b": "n1"}


def test_a_waiting_pod_that_begins_to_terminate_releases_its_capacity(trial: Trial) -> None:
    old = trial.pod("a", cpu=2, labels={"hold": "60"})
    trial.run()
    new = pod("a", 2, labels={"hold": "60"})
    new.pod.metadata.deletion_timestamp = "2026-01-01T00:00:00Z"
    trial.scheduler.handle(PodChanged(old, new), 0)
    assert waiting(trial) == []
    del trial.pods["default/a"]
    trial.pod("b", cpu=2)
    assert trial.settle() == {"b": "n1"}


def test_a_node_that_disappears_before_the_binding_is_undone(trial: Trial) -> None:
    trial.pod("a", labels={"hold": "60"})
    trial.run()
    trial.scheduler.handle(NodeChanged(node("n1"), None), 1)
    trial.node("n2")
    trial.tick(3)
    trial.run()
    assert trial.messages()["a"] == 'node "n1" was deleted'
    assert [w.node for w in trial.scheduler.waiting_pods()] == ["n2"]
    assert CALLS[2:4] == ["Record2 unreserve a n1", "Record unreserve a n1"]


def test_a_node_that_disappears_while_the_binding_is_written_leaves_it_to_the_api_server(trial: Trial) -> None:
    trial.pod("a")
    decided = trial.run()
    trial.scheduler.handle(NodeChanged(node("n1"), None), 1)
    trial.bind(decided)
    assert trial.places() == {"a": "n1"}
    trial.scheduler.handle(NodeChanged(None, node("n1", 2)), 2)
    trial.check()


def test_a_pod_that_another_scheduler_binds_is_counted_there_only(trial: Trial) -> None:
    trial.node("n2")
    old = trial.pod("a", labels={"hold": "60"})
    trial.run()
    here = trial.scheduler.waiting_pods()[0].node
    there = "n1" if here == "n2" else "n2"
    trial.pods["default/a"] = old.on(there)
    trial.scheduler.handle(PodChanged(old, trial.pods["default/a"]), 1)
    assert waiting(trial) == []


def test_the_watch_may_confirm_a_binding_before_its_result(trial: Trial) -> None:
    old = trial.pod("a")
    trial.run()
    trial.pods["default/a"] = old.on("n1")
    trial.scheduler.handle(PodChanged(old, trial.pods["default/a"]), 1)
    trial.check()
    assert trial.scheduler.handle(BindEnded("default/a", "unknown outcome"), 2) == []


def test_a_victim_that_waits_is_cancelled_not_evicted(trial: Trial) -> None:
    trial.pod("weak", cpu=2, labels={"hold": "60"})
    trial.run()
    trial.pod("strong", cpu=2, priority=10)
    decided = trial.run()
    assert not any(isinstance(d, EvictPod) for d in decided)
    assert trial.messages()["weak"] == "preempted by default/strong on node n1"
    trial.bind(decided)
    trial.tick(2)
    assert trial.settle() == {"strong": "n1"}
