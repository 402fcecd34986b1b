"""After which events a pod that a plugin rejected is tried again. Kubernetes: EventsToRegister."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import pytest

from tests.scheduler.profiles.trial import Trial
from volcano_py.scheduler.profiles.cluster_events import CallAnswered
from volcano_py.scheduler.profiles.configuration import ProfilesConfigurationError
from volcano_py.scheduler.profiles.decisions import Ask
from volcano_py.scheduler.profiles.plugin_api.calls import Answer, Call
from volcano_py.scheduler.profiles.plugin_api.cycle_state import CycleState
from volcano_py.scheduler.profiles.plugin_api.events import NODES, OBJECTS, PODS, ActionType, Interest
from volcano_py.scheduler.profiles.plugin_api.extension_points import (
    Filter,
    Permit,
    PreBind,
    PreEnqueue,
    PreFilter,
    Reserve,
)
from volcano_py.scheduler.profiles.plugin_api.handle import Handle
from volcano_py.scheduler.profiles.plugin_api.node_info import NodeInfo
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.plugin_api.status import PENDING, SUCCESS, Status, unschedulable


class Gate(PreEnqueue, PreFilter, Filter, Reserve, Permit, PreBind):
    """Rejects every pod at one point while it is closed. It declares no interests."""

    name = "Gate"
    closed_at = ""

    def _open(self, point: str) -> Status:
        return unschedulable("closed") if Gate.closed_at == point else SUCCESS

    def pre_enqueue(self, pod: PodInfo) -> Status:
        return self._open("PreEnqueue")

    def pre_filter(self, state: CycleState, pod: PodInfo) -> tuple[Collection[str] | None, Status]:
        return None, self._open("PreFilter")

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return self._open("Filter")

    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        return self._open("Reserve")

    def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        pass

    def permit(self, state: CycleState, pod: PodInfo, node: str) -> tuple[Status, float]:
        return self._open("Permit"), 0

    def pre_bind(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        return self._open("PreBind")


def _node_label(t: Trial) -> None:
    t.node("n1", labels={"changed": "yes"})


def _another_pod_ends(t: Trial) -> None:
    t.delete("other")


def _a_pod_is_created(t: Trial) -> None:
    t.pod("third", cpu=100)


EVENTS = [_node_label, _another_pod_ends, _a_pod_is_created]


@pytest.mark.parametrize("point", ["PreEnqueue", "PreFilter", "Filter", "Reserve", "Permit", "PreBind"])
@pytest.mark.parametrize("event", EVENTS)
def test_without_interests_every_event_helps(point: str, event: Callable[[Trial], None]) -> None:
    Gate.closed_at = ""
    t = Trial(Gate)
    t.node("n1")
    t.pod("other", nodeName="n1")
    Gate.closed_at = point
    t.pod("a")
    assert "a" not in t.settle()
    Gate.closed_at = ""
    t.tick(30)
    assert "a" not in t.settle(), "no event has happened"
    event(t)
    t.tick(2)
    assert t.settle()["a"] == "n1"
    t.check()


class Deaf(Gate):
    """Declares that no event helps."""

    name = "Deaf"

    def interests(self) -> tuple[Interest, ...]:
        return ()


def test_empty_interests_are_no_interests() -> None:
    Gate.closed_at = "Filter"
    t = Trial(Deaf)
    t.node("n1")
    t.pod("a")
    t.settle()
    Gate.closed_at = ""
    _node_label(t)
    t.tick(30)
    assert t.settle() == {}


class Late(Filter, PreFilter, PreBind):
    """Calls another program, and rejects the pod with the response. It declares no interests."""

    name = "Late"
    at = ""

    def __init__(self, arguments: Any, handle: Handle) -> None:
        self._handle = handle

    def _asked(self, point: str, pod: PodInfo) -> Status:
        if point != Late.at:
            return SUCCESS
        found = self._handle.answer(pod, point, lambda: Call(point, dict, 1.0))
        return PENDING if found is None else unschedulable(found.body) if found.body else SUCCESS

    def pre_filter(self, state: CycleState, pod: PodInfo) -> tuple[Collection[str] | None, Status]:
        return None, self._asked("PreFilter", pod)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return SUCCESS

    def pre_bind(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        return self._asked("PreBind", pod)


@pytest.mark.parametrize("point", ["PreFilter", "PreBind"])
def test_an_event_before_the_response_counts(point: str) -> None:
    Late.at = point
    t = Trial(Late)
    t.node("n1")
    t.pod("a")
    calls = [d for d in t.run() if isinstance(d, Ask)]
    _node_label(t)
    t.decided += t.scheduler.handle(CallAnswered(calls[0].number, Answer("no")), t.now)
    t.run()
    assert t.messages()["a"].endswith("no") or "no" in t.messages()["a"]
    Late.at = ""
    t.tick(3)
    assert t.settle() == {"a": "n1"}


def _raises() -> Any:
    raise KeyError("x")


@pytest.mark.parametrize(
    ("interests", "text"),
    [
        (lambda: None, "interests returns None; return a tuple of Interest"),
        (lambda: Interest(PODS, ActionType.ADD), "interests returns Interest("),
        (lambda: ["Pod"], "interests[0] is 'Pod'; use Interest(kinds, action, hint)"),
        (lambda: [Interest("Pod", ActionType.ADD)], "interests[0].kinds is 'Pod'; use a set of Kind"),
        (lambda: [Interest(frozenset(), ActionType.ADD)], "interests[0].kinds is frozenset(); use a set of Kind"),
        (lambda: [Interest(PODS, "add")], "interests[0].action is 'add'; use Action"),
        (lambda: [Interest(PODS, ActionType(0))], "interests[0].action is <ActionType: 0>; use Action"),
        (
            lambda: [Interest(PODS, ActionType.ADD), Interest(PODS, ActionType.ADD, 3)],
            "interests[1].hint is 3; use a function",
        ),
        (lambda: [Interest(NODES, ActionType.ADD, lambda pod: True)], "cannot be called with pod, old and new"),
        (lambda: [Interest(OBJECTS, ActionType.ADD)], "an Interest in OBJECTS matches nothing"),
        (_raises, "interests raised KeyError: 'x'"),
    ],
)
def test_wrong_interests_are_rejected_at_the_start(interests: Callable[[], Any], text: str) -> None:
    wrong = type("Wrong", (Gate,), {"name": "Wrong", "interests": lambda self: interests()})
    with pytest.raises(ProfilesConfigurationError) as e:
        Trial(wrong)
    assert str(e.value).startswith("profile default-scheduler, plugin Wrong: ")
    assert text in str(e.value)
