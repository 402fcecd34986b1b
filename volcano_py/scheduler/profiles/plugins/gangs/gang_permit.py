"""GangPermit: members of a group wait on their nodes until enough of them have one. Kubernetes: the out-of-tree plugin
coscheduling. Pods of Volcano's PodGroups are placed by the session instead."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from volcano_py.api.meta import format_time, parse_time
from volcano_py.scheduler.profiles.objects import Manifest, ObjectKind, key_of
from volcano_py.scheduler.profiles.plugin_api.cycle_state import CycleState
from volcano_py.scheduler.profiles.plugin_api.events import (
    NODES,
    OBJECTS,
    PODS,
    ActionType,
    ClusterEvent,
    Interest,
    Kind,
)
from volcano_py.scheduler.profiles.plugin_api.extension_points import (
    Observer,
    Permit,
    PostBind,
    PostFilter,
    PostFilterResult,
    PreFilter,
    QueueSort,
    Reserve,
)
from volcano_py.scheduler.profiles.plugin_api.handle import Handle
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.plugin_api.status import SKIP, SUCCESS, Code, Status, unresolvable, unschedulable
from volcano_py.scheduler.profiles.plugins.gangs.gang_room import missing_resource, most_that_fit
from volcano_py.scheduler.profiles.plugins.gangs.label_groups import LabelGroups

POD_GROUP = ObjectKind("scheduling.x-k8s.io/v1alpha1", "PodGroup")
_CLOSE = 0.1
"""The largest share of missing members with which the waiting members keep their nodes, until such a wait times out."""
_LONGEST_PAUSE = 900.0
"""The longest time in seconds for which a group is not tried after waits that timed out."""
UNSCHEDULABLE = "Unschedulable"
FAILED = "Failed"
"""The phase of a group whose time since its creation is over: its pods are not tried any more."""


class GangPermitArguments(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    group_label: str = "scheduling.x-k8s.io/pod-group"
    """The label of pods with the name of their group."""
    task_label: str = "volcano.sh/task-spec"
    """The label of pods with the name of their type, for `minTaskMember` of the group."""
    permit_waiting_time_seconds: int = 60
    """How long members wait, if the group sets no time."""
    pod_group_backoff_seconds: int = 1
    """How long a rejected group is not tried again."""
    timeout_from: Literal["firstMember", "creation"] = "firstMember"
    """When the timeout begins: when the first member gets a node, and again in each attempt; or when the group is
    created, and then its end is final."""


class PermittedGang(NamedTuple):
    """A group, as its PodGroup defines it."""

    min_member: int
    min_task_member: Mapping[str, int]
    timeout: float
    created: float
    phase: str = ""


class GangPermit(QueueSort, PreFilter, PostFilter, Reserve, Permit, PostBind, Observer):
    name = "GangPermit"
    reads = (POD_GROUP,)
    kinds = PODS | OBJECTS

    def __init__(self, arguments: GangPermitArguments, handle: Handle) -> None:
        self._args = arguments
        self._handle = handle
        self._groups = LabelGroups(arguments.group_label, handle)
        self._started: dict[str, float] = {}
        """For each group, the time at which the first of the waiting members got its node."""
        self._given_up: dict[str, float] = {}
        """For each rejected group, the time of the rejection."""
        self._timeouts: dict[str, int] = {}
        """For each group, how many of its waits have ended without success since the first that timed out."""
        self._why: dict[str, str] = {}
        """For each group, why a member had no node in the last attempt."""

    def observe(self, event: ClusterEvent) -> None:
        self._groups.observe(event)
        if event.kind is Kind.OBJECT and event.action is ActionType.DELETE and ObjectKind.of(event.old) == POD_GROUP:
            removed = key_of(event.old)
            self._groups.members(removed)
            for table in (self._started, self._given_up, self._timeouts, self._why):
                table.pop(removed, None)

    def sort_key(self, pod: PodInfo, queued_at: float) -> tuple[float | str, ...]:
        """The order by priority, age of the group, its name: members of a group are adjacent."""
        group = self._groups.name(pod)
        gang = self._gang(group) if group else None
        since = gang.created if gang is not None else math.inf
        return (-pod.priority, since if group else math.inf, group, queued_at)

    def pre_filter(self, state: CycleState, pod: PodInfo) -> tuple[Collection[str] | None, Status]:
        group = self._groups.join(pod)
        if not group:
            return None, SKIP
        gang = self._gang(group)
        if gang is None:
            return None, unresolvable(f'the PodGroup "{group}" does not exist')
        if (over := self._is_over(pod, group, gang)) is not None:
            return None, over
        members = self._groups.members(group)
        ready = [m for m in members if not m.gates]
        short = _short(gang, ready, self._args.task_label)
        if short:
            gated = len(members) - len(ready)
            also = f", {gated} {'has' if gated == 1 else 'have'} scheduling gates" if gated else ""
            return None, unresolvable(f'the PodGroup "{group}" has too few pods: {short}{also}')
        rest = self._given_up.get(group, -math.inf) + self._pause(group, gang) - self._handle.now
        if rest > 0:
            self._handle.try_again(pod, rest)
            return None, unresolvable(f'the PodGroup "{group}" was rejected just now{self._last_reason(group)}')
        self._given_up.pop(group, None)
        if group not in self._started and (lacking := self._does_not_fit(gang, group)):
            self._given_up[group] = self._handle.now
            self._why[group] = lacking
            self._write_status(pod, group, UNSCHEDULABLE, lacking)
            return None, unschedulable(f'the PodGroup "{group}" does not fit: {lacking}')
        return None, SUCCESS

    def _is_over(self, pod: PodInfo, group: str, gang: PermittedGang) -> Status | None:
        """The final rejection of a group whose time since its creation is over; else the pod is tried then."""
        if self._args.timeout_from != "creation" or gang.phase == "Scheduled":
            return None
        rest = gang.created + gang.timeout - self._handle.now
        if gang.phase != FAILED and rest > 0:
            self._handle.try_again(pod, rest)
            return None
        text = f"not scheduled within {gang.timeout:g} s of its creation"
        if gang.phase != FAILED:
            counts = f"{len(self._placed(group))} of {gang.min_member} members had a node"
            self._write_status(pod, group, FAILED, f"timeout: {text}: {counts}{self._last_reason(group)}", final=True)
        return unresolvable(f'the PodGroup "{group}" was {text}; delete it and create it again')

    def _pause(self, group: str, gang: PermittedGang) -> float:
        """How long a rejected group is not tried: twice as long with each wait in a row, so that a gang that never fits
        leaves its capacity to others."""
        shortest, timeouts = float(self._args.pod_group_backoff_seconds), self._timeouts.get(group, 0)
        if not timeouts:
            return shortest
        return max(shortest, min(gang.timeout * 2.0 ** min(timeouts - 1, 30), _LONGEST_PAUSE))

    def _does_not_fit(self, gang: PermittedGang, group: str) -> str:
        """Why the missing members cannot all get a node, whatever is evicted for them; empty if they may."""
        placed = self._placed(group)
        keys = {p.key for p in placed}
        waiting = [m for m in self._groups.members(group) if m.key not in keys and not m.gates]
        nodes = list(self._handle.nodes())
        label = self._args.task_label
        needs = [("", gang.min_member, placed, waiting)]
        for kind, least in gang.min_task_member.items():
            there, coming = ([p for p in pods if p.labels.get(label, "") == kind] for pods in (placed, waiting))
            needs.append((f" {kind}", least, there, coming))
        for kind, least, there, coming in needs:
            fit = len(there) + most_that_fit(coming, nodes, self._handle.filters.accepts_node)
            if fit < least:
                lacking = missing_resource(coming, nodes)
                return f"{fit} of {least}{kind} members fit at the same time; {lacking}"
        return ""

    def _last_reason(self, group: str) -> str:
        return f"; {self._why[group]}" if group in self._why else ""

    def post_filter(self, state: CycleState, pod: PodInfo, rejected: dict[str, Status]) -> PostFilterResult:
        """Reject the waiting members of a group whose member fits on no node, unless nearly all others have one."""
        group = self._groups.name(pod)
        gang = self._gang(group) if group else None
        if gang is None:
            return PostFilterResult(unschedulable())
        missing = gang.min_member - len(self._placed(group))
        reasons = Counter(s.message for s in rejected.values() if s.message and s.plugin != self.name)
        if reasons:
            listed = ", ".join(f"{count} {text}" for text, count in reasons.most_common(3))
            self._why[group] = f"{pod.name} fits on no node: {listed}"
        close = gang.min_member * _CLOSE if group not in self._timeouts else 0
        if not self._waiting(group) or missing <= close:
            return PostFilterResult(unschedulable())
        if group in self._timeouts:
            self._timeouts[group] += 1
        self._reject(group, f'the PodGroup "{group}" cannot be placed now: {pod.name} fits on no node')
        return PostFilterResult(unschedulable(f'the PodGroup "{group}" lacks {missing} of {gang.min_member} members'))

    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        return SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        """Reject the waiting members of a group if one of them has lost its node."""
        group = self._groups.name(pod)
        gang = self._gang(group) if group in self._started else None
        if gang is None:
            self._started.pop(group, None)
            return
        had = len(self._placed(group))
        if self._deadline(gang, self._started[group]) <= self._handle.now:
            self._timeouts[group] = self._timeouts.get(group, 0) + 1
            counts = f"{had} of {gang.min_member} members had a node"
            why = f"timeout after {self._handle.now - self._started[group]:g} s: {counts}{self._last_reason(group)}"
        else:
            why = f"{pod.name} lost its node before enough members had one: {had} of {gang.min_member} had"
        self._reject(group, f'the PodGroup "{group}" was rejected: {why}')
        if self._is_over(pod, group, gang) is None:
            self._write_status(pod, group, UNSCHEDULABLE, why)

    def permit(self, state: CycleState, pod: PodInfo, node: str) -> tuple[Status, float]:
        group = self._groups.name(pod)
        gang = self._gang(group) if group else None
        if gang is None:
            return SUCCESS, 0.0
        short = _short(gang, self._placed(group), self._args.task_label)
        if short:
            started = self._started.setdefault(group, self._handle.now)
            wait = Status(Code.WAIT, (f'the PodGroup "{group}" waits for members: {short}',))
            for member in self._groups.members(group):
                if not member.gates and member.key != pod.key and not self._handle.is_placed(member.key):
                    self._handle.try_again(member, 0)  # it may wait for an event, as its group was too small
            return wait, max(0.0, self._deadline(gang, started) - self._handle.now)
        for table in (self._started, self._timeouts, self._why):
            table.pop(group, None)
        for waiting in self._waiting(group):
            self._handle.allow(waiting, self.name)
        return SUCCESS, 0.0

    def post_bind(self, state: CycleState, pod: PodInfo, node: str) -> None:
        group = self._groups.name(pod)
        gang = self._gang(group) if group else None
        if gang is not None:
            placed = self._placed(group)
            short = _short(gang, placed, self._args.task_label)
            self._write_status(pod, group, "Scheduling" if short else "Scheduled", f"{len(placed)} members have a node")

    def interests(self) -> Sequence[Interest]:
        return (
            Interest(PODS, ActionType.ADD, self._pod_helps),
            Interest(PODS, ActionType.DELETE | ActionType.SCALE_DOWN),
            Interest(NODES, ActionType.ADD | ActionType.ALLOCATABLE | ActionType.NODE_LABEL | ActionType.TAINT),
            Interest(OBJECTS, ActionType.ADD | ActionType.OTHER, self._group_helps),
        )

    def _deadline(self, gang: PermittedGang, started: float) -> float:
        """When the wait of members ends."""
        end = started + gang.timeout
        return end if self._args.timeout_from == "firstMember" else min(end, max(gang.created + gang.timeout, started))

    def _gang(self, group: str) -> PermittedGang | None:
        found = self._handle.object(POD_GROUP, group)
        if found is None:
            return None
        spec = found.get("spec") or {}
        created = found["metadata"].get("creationTimestamp")
        return PermittedGang(
            spec.get("minMember", 1),
            spec.get("minTaskMember") or {},
            spec.get("scheduleTimeoutSeconds") or self._args.permit_waiting_time_seconds,
            parse_time(created) if created else 0.0,
            (found.get("status") or {}).get("phase", ""),
        )

    def _placed(self, group: str) -> list[PodInfo]:
        """The members that are bound or assumed."""
        return [p for p in self._groups.members(group) if self._handle.is_placed(p.key)]

    def _waiting(self, group: str) -> list[str]:
        return [p.key for p in self._groups.members(group) if self._handle.holds(p.key, self.name)]

    def _reject(self, group: str, why: str) -> None:
        self._started.pop(group, None)
        self._given_up[group] = self._handle.now
        for waiting in self._waiting(group):
            self._handle.reject(waiting, self.name, why)

    def _write_status(self, pod: PodInfo, group: str, phase: str, message: str, *, final: bool = False) -> None:
        """Write the status of the PodGroup, if it changes. `final`: also as the condition Failed."""
        found = self._handle.object(POD_GROUP, group)
        shown = (found.get("status") or {}) if found is not None else {}
        new_reason = phase == UNSCHEDULABLE and shown.get("message") != message
        if found is not None and (shown.get("phase") != phase or new_reason):
            status: dict[str, Any] = {"phase": phase, "message": message}
            if final:
                condition = {"type": FAILED, "status": "True", "reason": "ScheduleTimeout", "message": message}
                status["conditions"] = [{**condition, "lastTransitionTime": format_time(self._handle.now)}]
            self._handle.patch(POD_GROUP, group, {"status": status}, pod, status=True)

    def _pod_helps(self, pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> bool:
        return new is not None and self._groups.name(new) == self._groups.name(pod) != ""

    def _group_helps(self, pod: PodInfo, old: Manifest | None, new: Manifest | None) -> bool:
        if new is None or key_of(new) != self._groups.name(pod):
            return False
        return old is None or old.get("spec") != new.get("spec")


def _short(gang: PermittedGang, members: Sequence[PodInfo], task_label: str) -> str:
    """The missing part of the minimum; empty if none is missing."""
    counts: dict[str, int] = {}
    for p in members:
        kind = p.labels.get(task_label, "")
        counts[kind] = counts.get(kind, 0) + 1
    parts = [f"{sum(counts.values())} of {gang.min_member}"] if sum(counts.values()) < gang.min_member else []
    parts += [f"{counts.get(k, 0)} of {n} {k}" for k, n in gang.min_task_member.items() if counts.get(k, 0) < n]
    return ", ".join(parts)
