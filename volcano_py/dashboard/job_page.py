"""The page of one job as data: its state and reason, roles, pods and timeline."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from volcano_py.cli.wrapping import counted
from volcano_py.dashboard.jobs import JobRow, seconds
from volcano_py.scheduler.explain.groups.group_rows import GroupRow
from volcano_py.scheduler.explain.table import REASONS

Manifest = dict[str, Any]
MOST_PODS = 200
"""Pods that are listed; those that do not run come first."""
_ORDER = ("Failed", "Unknown", "Pending", "Terminating", "Running", "Succeeded")


class PodRow(NamedTuple):
    """A pod."""

    name: str
    role: str
    phase: str
    node: str
    restarts: int
    created: float
    why: str


class Role(NamedTuple):
    """A role of a Job: how many replicas it has, and its pods by phase."""

    name: str
    replicas: int
    phases: tuple[tuple[str, int], ...]


class Moment(NamedTuple):
    """One entry of the timeline; time in seconds since the epoch."""

    time: float
    what: str


class JobPage(NamedTuple):
    """A job. `pods`: None if the user may not list pods; `hidden`: pods that are not listed."""

    row: JobRow
    facts: tuple[tuple[str, str], ...]
    remedy: str
    roles: tuple[Role, ...]
    pods: tuple[PodRow, ...] | None
    hidden: int
    timeline: tuple[Moment, ...]
    groups: tuple[GroupRow, ...] = ()
    """The tree of native groups."""


def job_page(
    row: JobRow,
    group: Manifest | None,
    job: Manifest | None,
    pods: Iterable[Manifest] | None,
    members: Collection[str] | None = None,
) -> JobPage:
    """The page of a job. `pods`: of all jobs; None: they may not be listed.
    `members`: the groups of its pods; None: its PodGroup."""
    namespace, _, group_name = row.group.partition("/")
    members = {group_name} - {""} if members is None else members
    mine = None
    if pods is not None:
        rows = [pod_row(p) for p in pods if p["group"] in members and p["metadata"]["namespace"] == namespace]
        mine = sorted(rows, key=lambda p: (_ORDER.index(p.phase) if p.phase in _ORDER else 0, p.name))
    return JobPage(
        row,
        _facts(row, group, job),
        REASONS[row.code].remedy if row.code in REASONS else "",
        _roles(job, mine or []),
        None if mine is None else tuple(mine[:MOST_PODS]),
        max(0, len(mine or ()) - MOST_PODS),
        _timeline(group, job),
    )


def pod_row(p: Manifest) -> PodRow:
    """The row of a pod."""
    metadata = p["metadata"]
    created = seconds(metadata.get("creationTimestamp"))
    return PodRow(metadata["name"], p["role"], p["phase"], p["nodeName"], p["restarts"], created, p["why"])


def _facts(row: JobRow, group: Manifest | None, job: Manifest | None) -> tuple[tuple[str, str], ...]:
    spec = (job or group or {})["spec"]
    found = [
        ("Namespace", row.namespace),
        ("Queue", row.queue),
        ("Needs", f"{row.least} of {counted(row.pods, 'pod')}" if row.pods != row.least else counted(row.pods, "pod")),
        ("Runs", counted(row.running, "pod")),
    ]
    if priority := spec.get("priorityClassName"):
        found.append(("Priority class", priority))
    if scheduler := spec.get("schedulerName"):
        found.append(("Scheduler", scheduler))
    if row.group and row.has_job:
        found.append(("PodGroup", row.group.partition("/")[2]))
    return tuple(found)


def _roles(job: Manifest | None, pods: list[PodRow]) -> tuple[Role, ...]:
    roles = []
    for task in job["spec"]["tasks"] if job is not None else ():
        phases: dict[str, int] = {}
        for p in pods:
            if p.role == task["name"]:
                phases[p.phase] = phases.get(p.phase, 0) + 1
        roles.append(Role(task["name"], task["replicas"], tuple(sorted(phases.items()))))
    return tuple(roles)


def _timeline(group: Manifest | None, job: Manifest | None) -> tuple[Moment, ...]:
    """What the conditions of Job and PodGroup say."""
    found = []
    if job is not None:
        found.append(Moment(seconds(job["metadata"]["creationTimestamp"]), "Job created"))
        for c in job["status"]["conditions"]:
            found.append(Moment(seconds(c["lastTransitionTime"]), f"Job is {c['status']}"))
    if group is not None:
        found.append(Moment(seconds(group["metadata"]["creationTimestamp"]), "PodGroup created"))
        for c in group["status"]["conditions"]:
            text = " ".join((c["message"] or c["reason"]).split())
            found.append(Moment(seconds(c["lastTransitionTime"]), f"PodGroup is {c['type']}: {text}"))
    return tuple(sorted((m for m in found if m.time), key=lambda m: m.time))
