"""Plugins that call other programs: the pod waits for the response, and other pods are scheduled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from tests.scheduler.profiles.trial import Trial
from volcano_py.scheduler.profiles.cluster_events import CallAnswered
from volcano_py.scheduler.profiles.decisions import Ask, BindPod, Decision, EvictPod
from volcano_py.scheduler.profiles.plugin_api.calls import Answer, Call
from volcano_py.scheduler.profiles.plugin_api.cycle_state import CycleState
from volcano_py.scheduler.profiles.plugin_api.extension_points import (
    Candidate,
    NodesFilter,
    Permit,
    PreBind,
    PreEnqueue,
    PreFilter,
    Reserve,
    Reviewer,
    Score,
)
from volcano_py.scheduler.profiles.plugin_api.handle import Handle
from volcano_py.scheduler.profiles.plugin_api.node_info import NodeInfo
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.plugin_api.status import PENDING, SUCCESS, Status, unschedulable


class Caller(PreEnqueue, PreFilter, NodesFilter, Score, Reserve, Permit, PreBind, Reviewer):
    """Sends calls at every point for pods with the label `ask`; the response is a reason to reject, or empty."""

    name = "Caller"

    def __init__(self, arguments: Any, handle: Handle) -> None:
        self._handle = handle

    def _ask(self, point: str, pod: PodInfo, *, once: bool = True) -> Status:
        if "ask" not in pod.labels:
            return SUCCESS
        found = self._handle.answer(pod, point, lambda: Call(point, dict, 1.0), once=once)
        if found is None:
            return PENDING
        return unschedulable(found.body) if found.body else SUCCESS

    def pre_enqueue(self, pod: PodInfo) -> Status:
        return self._ask("preEnqueue", pod)

    def pre_filter(self, state: CycleState, pod: PodInfo) -> tuple[None, Status]:
        return None, self._ask("preFilter", pod, once=False)

    def filter_nodes(self, state: CycleState, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Mapping[str, Status] | Status:
        status = self._ask("filter", pod, once=False)
        return dict.fromkeys((n.name for n in nodes), status) if status.rejected else status

    def review(self, state: CycleState, pod: PodInfo, candidates: Sequence[Candidate]) -> Sequence[Candidate] | Status:
        status = self._ask("preempt", pod, once=False)
        return [] if status.rejected else candidates if status.ok else status

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Status:
        return self._ask("score", pod, once=False)

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return 0

    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        return self._ask("reserve", pod)

    def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        self._handle.notify(pod, Call("unreserve", dict, 1.0))

    def permit(self, state: CycleState, pod: PodInfo, node: str) -> tuple[Status, float]:
        return self._ask("permit", pod), 0

    def pre_bind(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        return self._ask("preBind", pod)


POINTS = ["preEnqueue", "preFilter", "filter", "score", "reserve", "permit", "preBind"]


def trial() -> Trial:
    t = Trial(Caller)
    t.node("n1")
    t.node("n2")
    return t


def answered(t: Trial, reason: Callable[[str], str]) -> list[str]:
    """Respond to all calls until there are none; returns the calls. Bindings are executed."""
    called: list[str] = []
    todo: list[Decision] = t.run()
    while todo:
        d = todo.pop(0)
        if isinstance(d, Ask):
            called.append(d.call.url)
            if d.number:
                todo += t.scheduler.handle(CallAnswered(d.number, Answer(reason(d.call.url))), t.now)
        elif isinstance(d, BindPod):
            todo += t.bind([d])
        todo += t.run()
    return called


def test_each_point_sends_one_call_and_others_continue_meanwhile() -> None:
    t = trial()
    t.pod("a", labels={"ask": ""})
    t.pod("b")
    t.bind(t.run()[1:])
    assert t.places().keys() == {"b"}
    t.check()
    t.scheduler.handle(CallAnswered("1", Answer("")), 0)
    assert answered(t, lambda point: "") == POINTS[1:]
    assert t.places().keys() == {"a", "b"}
    t.check()


@pytest.mark.parametrize("point", POINTS)
def test_a_rejection_at_any_point_leaves_nothing(point: str) -> None:
    t = trial()
    t.pod("a", labels={"ask": ""})
    called = answered(t, lambda p: "no" if p == point else "")
    expected = POINTS[: POINTS.index(point) + 1]
    if point in ("reserve", "permit", "preBind"):
        expected = [*expected, "unreserve"]
    if point == "score":
        expected = [*expected, "preEnqueue"]  # an error: the pod enters the back-off queue
    assert called == expected
    assert t.places() == {}
    t.check()


@pytest.mark.parametrize("point", POINTS)
def test_a_pod_that_is_deleted_while_it_waits_for_a_response_leaves_nothing(point: str) -> None:
    t = trial()
    t.pod("a", labels={"ask": ""})
    todo = t.run()
    calls = [d for d in todo if isinstance(d, Ask)]
    while calls and calls[0].call.url != point:
        decided = t.scheduler.handle(CallAnswered(calls[0].number, Answer("")), 0) + t.run()
        calls = [d for d in decided if isinstance(d, Ask)]
    t.check()
    t.delete("a")
    t.check()
    assert not any(isinstance(d, BindPod) for d in t.scheduler.handle(CallAnswered(calls[0].number, Answer("")), 0))
    assert t.scheduler.attempt(0) is None


def test_candidates_of_preemption_are_reviewed() -> None:
    for reason, evicted in (("keep them", False), ("", True)):
        t = Trial(Caller)
        t.node("n1", cpu=1)
        t.pod("weak", node="n1")
        t.pod("a", priority=5, labels={"ask": ""})
        called = answered(t, lambda p, reason=reason: reason if p == "preempt" else "")  # type: ignore[misc]
        assert called == ["preEnqueue", "preFilter", "preempt"]
        assert ("weak" in t.messages()) is False
        assert any(isinstance(d, EvictPod) for d in t.decided) is evicted
