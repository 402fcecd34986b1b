"""Binding cycles: Permit, results of bindings, and what happens to pods and nodes meanwhile."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.scheduler.profiles.trial import Trial, node, pod
from volcano_py.scheduler.profiles.cycle_state import CycleState
from volcano_py.scheduler.profiles.decisions import SCHEDULER_ERROR, Bind, Evict, Fail
from volcano_py.scheduler.profiles.events import PODS, Action, Interest
from volcano_py.scheduler.profiles.extension_points import Permit, Reserve
from volcano_py.scheduler.profiles.pod_info import PodInfo
from volcano_py.scheduler.profiles.status import SUCCESS, Code, Status, unschedulable

CALLS: list[str] = []


class Hold(Permit):
    """Holds every pod with the label `hold`, for as many seconds as it says; denies those with `deny`."""

    name = "Hold"

    def permit(self, state: CycleState, pod: PodInfo, node: str) -> tuple[Status, float]:
        if "deny" in pod.labels:
            return unschedulable("denied"), 0
        if "hold" in pod.labels:
            return Status(Code.WAIT), float(pod.labels["hold"])
        return SUCCESS, 0

    def interests(self) -> tuple[Interest, ...]:
        return (Interest(PODS, Action.DELETE),)


class HoldToo(Hold):
    name = "HoldToo"


class Book(Reserve):
    """Writes down what it is asked."""

    name = "Book"

    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        CALLS.append(f"{self.name} reserve {pod.name} {node}")
        return SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        CALLS.append(f"{self.name} unreserve {pod.name} {node}")


class Book2(Book):
    name = "Book2"


class Refuse(Book):
    name = "Refuse"

    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        super().reserve(state, pod, node)
        return unschedulable("full")


@pytest.fixture
def trial() -> Iterator[Trial]:
    CALLS.clear()
    t = Trial(Book, Book2, Hold)
    t.node("n1", cpu=2)
    yield t
    t.check()


def waiting(t: Trial) -> list[str]:
    return [w.pod.name for w in t.scheduler.waiting_pods()]


def test_a_pod_that_waits_keeps_its_place_and_others_go_on(trial: Trial) -> None:
    trial.pod("a", labels={"hold": "60"})
    trial.pod("b")
    trial.pod("c")
    said = trial.run()
    assert [d.pod.name for d in said if isinstance(d, Bind)] == ["b"]
    assert trial.messages() == {"c": trial.messages()["c"]}
    assert "Insufficient cpu" in trial.messages()["c"]
    assert waiting(trial) == ["a"]
    trial.check()
    assert trial.scheduler.next_deadline() == 30
    assert trial.scheduler.allow("default/a", "Hold", 1) == [Bind(trial.pods["default/a"], "n1")]


def test_a_wait_that_ends_frees_the_place(trial: Trial) -> None:
    trial.pod("a", cpu=2, labels={"hold": "5"})
    trial.run()
    assert trial.tick(4) == []
    said = trial.tick()
    assert isinstance(said[0], Fail)
    assert said[0].message == "rejected due to timeout after waiting 5s at plugin Hold"
    assert CALLS[2:] == ["Book2 unreserve a n1", "Book unreserve a n1"]
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
    assert t.scheduler.allow("default/a", "Hold", 1) == []
    assert t.scheduler.allow("default/a", "Hold", 1) == []
    assert t.scheduler.waiting_pods()[0].deadlines == {"HoldToo": 5}
    assert len(t.scheduler.allow("default/a", "HoldToo", 1)) == 1
    t.check()


def test_a_rejected_pod_is_not_tried_before_an_event_of_the_plugin(trial: Trial) -> None:
    trial.pod("a", labels={"hold": "60"})
    trial.pod("other", node="n1")
    trial.run()
    said = trial.scheduler.reject("default/a", "Hold", "no more", 1)
    assert said == [Fail(trial.pods["default/a"], "no more")]
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
    trial.scheduler.reject("default/a", "Hold", "no more", 0)
    trial.tick(2)
    trial.run()
    assert waiting(trial) == ["a"]


def test_deny_frees_the_place_at_once(trial: Trial) -> None:
    trial.pod("a", cpu=2, labels={"deny": ""})
    trial.pod("b", cpu=2)
    assert trial.settle() == {"b": "n1"}
    assert trial.messages()["a"] == "denied"


def test_reserve_that_refuses_undoes_all_plugins_in_reverse() -> None:
    CALLS.clear()
    t = Trial(Book, Refuse, Book2)
    t.node("n1")
    t.pod("a")
    t.run()
    assert ["Book reserve a n1", "Refuse reserve a n1"] + [
        f"{name} unreserve a n1" for name in ("Book2", "Refuse", "Book")
    ] == CALLS
    assert t.messages() == {"a": "full"}
    t.check()


def test_a_binding_that_fails_is_undone_and_tried_again(trial: Trial) -> None:
    trial.pod("a", cpu=2)
    trial.pod("b", cpu=2)
    trial.run()
    assert trial.scheduler.attempt(0) is None
    said = trial.scheduler.bind_result("default/a", "conflict", 0)
    assert said == [Fail(trial.pods["default/a"], "binding rejected: conflict", SCHEDULER_ERROR)]
    trial.check()
    trial.tick(2)
    assert trial.settle() == {"b": "n1"}


def test_a_result_for_a_pod_of_the_same_name_that_is_gone_is_ignored(trial: Trial) -> None:
    trial.pod("a")
    trial.run()
    trial.delete("a")
    trial.pod("a", uid="second")
    trial.run()
    assert trial.scheduler.bind_result("default/a", "conflict", 0, uid="a") == []
    assert trial.scheduler.bind_result("default/a", "", 0, uid="second") == []
    trial.scheduler.update_pod(trial.pods["default/a"], trial.pods["default/a"].on("n1"), 0)
    trial.pods["default/a"] = trial.pods["default/a"].on("n1")


@pytest.mark.parametrize("labels", [{}, {"hold": "60"}])
def test_a_pod_that_is_deleted_meanwhile_leaves_nothing(trial: Trial, labels: dict[str, str]) -> None:
    trial.pod("a", cpu=2, labels=labels)
    trial.run()
    trial.pod("b", cpu=2)
    trial.delete("a")
    assert CALLS[2:4] == ["Book2 unreserve a n1", "Book unreserve a n1"]
    trial.check()
    assert trial.settle() == {"b": "n1"}


def test_a_waiting_pod_that_begins_to_terminate_gives_up_its_place(trial: Trial) -> None:
    old = trial.pod("a", cpu=2, labels={"hold": "60"})
    trial.run()
    new = pod("a", 2, labels={"hold": "60"})
    new.pod.metadata.deletion_timestamp = "2026-01-01T00:00:00Z"
    trial.scheduler.update_pod(old, new, 0)
    assert waiting(trial) == []
    del trial.pods["default/a"]
    trial.pod("b", cpu=2)
    assert trial.settle() == {"b": "n1"}


def test_a_node_that_disappears_before_the_binding_is_undone(trial: Trial) -> None:
    trial.pod("a", labels={"hold": "60"})
    trial.run()
    trial.scheduler.delete_node("n1", 1)
    trial.node("n2")
    trial.tick(3)
    trial.run()
    assert trial.messages()["a"] == 'node "n1" was deleted'
    assert [w.node for w in trial.scheduler.waiting_pods()] == ["n2"]
    assert CALLS[2:4] == ["Book2 unreserve a n1", "Book unreserve a n1"]


def test_a_node_that_disappears_while_the_binding_is_written_leaves_it_to_the_api_server(trial: Trial) -> None:
    trial.pod("a")
    said = trial.run()
    trial.scheduler.delete_node("n1", 1)
    trial.bind(said)
    assert trial.places() == {"a": "n1"}
    trial.scheduler.set_node(node("n1", 2), 2)
    trial.check()


def test_a_pod_that_another_scheduler_binds_is_counted_there_only(trial: Trial) -> None:
    trial.node("n2")
    old = trial.pod("a", labels={"hold": "60"})
    trial.run()
    here = trial.scheduler.waiting_pods()[0].node
    there = "n1" if here == "n2" else "n2"
    trial.pods["default/a"] = old.on(there)
    trial.scheduler.update_pod(old, trial.pods["default/a"], 1)
    assert waiting(trial) == []


def test_the_watch_may_confirm_a_binding_before_its_result(trial: Trial) -> None:
    old = trial.pod("a")
    trial.run()
    trial.pods["default/a"] = old.on("n1")
    trial.scheduler.update_pod(old, trial.pods["default/a"], 1)
    trial.check()
    assert trial.scheduler.bind_result("default/a", "unknown outcome", 2) == []


def test_a_victim_that_waits_is_cancelled_not_evicted(trial: Trial) -> None:
    trial.pod("weak", cpu=2, labels={"hold": "60"})
    trial.run()
    trial.pod("strong", cpu=2, priority=10)
    said = trial.run()
    assert not any(isinstance(d, Evict) for d in said)
    assert trial.messages()["weak"] == "preempted by default/strong on node n1"
    trial.bind(said)
    trial.tick(2)
    assert trial.settle() == {"strong": "n1"}
