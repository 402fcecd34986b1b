"""The decisions of the scheduler, as data for its caller."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from volcano_py.api.gang import PodGroup
from volcano_py.scheduler.model.jobs.pre_bind import PreBindStep
from volcano_py.scheduler.profiles.objects import ObjectKind
from volcano_py.scheduler.profiles.plugin_api.calls import Call
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo

SCHEDULED = "Scheduled"
UNSCHEDULABLE = "Unschedulable"
SCHEDULER_ERROR = "SchedulerError"


class BindPod(NamedTuple):
    """Write the binding, then report the outcome to `PodScheduler.bind_result`."""

    pod: PodInfo
    node: str
    steps: tuple[PreBindStep, ...] = ()
    """The writes before the binding, in this order; all of them are undone if one of them or the binding fails."""


class EvictPod(NamedTuple):
    pod: PodInfo
    preemptor: PodInfo
    for_group: bool = False
    """Whether the preemptor is the whole root group of this pod."""


class Nominate(NamedTuple):
    """Write `status.nominatedNodeName`; an empty node clears it."""

    pod: PodInfo
    node: str


class Fail(NamedTuple):
    """Write the condition PodScheduled=False, and the Event FailedScheduling with the same message."""

    pod: PodInfo
    message: str
    reason: str = UNSCHEDULABLE
    """The reason of the condition: SCHEDULER_ERROR if a plugin, or the binding, failed."""


class GroupCondition(NamedTuple):
    """Write the condition PodGroupInitiallyScheduled of a PodGroup; once True, it stays."""

    group: PodGroup
    ok: bool
    reason: str
    message: str


class ReportEvent(NamedTuple):
    """Write an Event about a pod."""

    pod: PodInfo
    type: str
    """`Normal` or `Warning`."""
    reason: str
    message: str


class Patch(NamedTuple):
    """Write a JSON merge patch of an object for a plugin; retry until the API server responds."""

    kind: ObjectKind
    key: str
    patch: Mapping[str, Any]
    pod: PodInfo
    """The pod for which it is written."""
    status: bool = False
    """Whether to patch the subresource status."""


class Ask(NamedTuple):
    """Make an HTTP call, then report its outcome to `PodScheduler.answered`, unless `number` is empty."""

    pod: PodInfo
    number: str
    call: Call


Decision = BindPod | EvictPod | Nominate | Fail | GroupCondition | ReportEvent | Patch | Ask
