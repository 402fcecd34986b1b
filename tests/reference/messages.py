"""The texts for users: why no node accepts a task, and the conditions of PodGroups. Volcano: FitErrors,
FitError, UpdatePodGroupCondition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from tests.reference.resource import Resource, is_within
from tests.reference.task import ALLOCATED_STATUS
from tests.reference.votes import PredicateError

if TYPE_CHECKING:
    from tests.reference.job import Job
    from tests.reference.task import Task

Condition = tuple[str, str, str, str]
"""Type, status, reason and message."""
READY = "tasks in gang are ready to be scheduled"


class FitErrors(NamedTuple):
    """Why no node accepts a task in this session."""

    text: str
    hopeless: frozenset[str] = frozenset()
    """The nodes on which no eviction would help."""


def fit_errors(rejected: Mapping[str, PredicateError], hyper_node: str = "") -> FitErrors:
    """From each node's reasons; a node with two reasons counts in both."""
    counts = Counter(reason for error in rejected.values() for reason in error.reasons)
    text = f"0/{len(rejected)} nodes are unavailable"
    if rejected:
        text += ": " + ", ".join(sorted(f"{n} {reason}" for reason, n in counts.items())) + "."
        text = f"In hyperNode {hyper_node}: {text}" if hyper_node else text
    return FitErrors(text, frozenset(name for name, error in rejected.items() if error.unresolvable))


def skipped_like_its_role(task: Task) -> FitErrors:
    """The message of a task whose role was rejected: it is not tried."""
    return FitErrors(f"Task {task.name} with role spec {task.role} has already predicated failed, skip")


def insufficient(needed: Resource, room: Resource) -> str:
    """The first resource that is not sufficient. Of others than cpu and memory Volcano uses any."""
    for name in ("cpu", "memory", "pods", *sorted(needed.scalars or {})):
        if not is_within(needed.get(name), room.get(name)):
            return f"Insufficient {name}"
    raise AssertionError("nothing is lacking")


def message_of(job: Job) -> str:
    """The state of a gang in one line."""
    counts = Counter(t.status for t in job.tasks.values())
    parts = sorted([*(f"{n} {status}" for status, n in counts.items()), f"{job.min_available} minAvailable"])
    text = f"pod group is {'' if job.is_ready() else 'not '}ready, {', '.join(parts)}"
    reasons = Counter(_reason(t) for t in job.with_status("Pending"))
    if reasons:
        text += "; Pending: " + ", ".join(sorted(f"{n} {reason}" for reason, n in reasons.items()))
    rejected = [t for t in job.tasks.values() if t.uid in job.fit_errors]
    if rejected:  # Volcano uses any
        first = min(rejected, key=lambda t: (t.status != "Pending", t.key))
        text += f". Origin reason is {first.name}: {job.fit_errors[first.uid].text}"
    return text


def _reason(task: Task) -> str:
    return "Schedulable" if _tried(task) == "Allocated" else "Unschedulable"


def _tried(task: Task) -> str:
    return task.last_try[0] if task.last_try else task.status


def report_unschedulable(job: Job) -> None:
    """Set the condition that the gang is not ready, with the reason."""
    found = job.ready_task_num() + sum(_tried(t) in ALLOCATED_STATUS for t in job.with_status("Pending"))
    text = f"{job.min_available - found}/{len(job.tasks)} tasks in gang unschedulable: {message_of(job)}"
    _put(job.conditions, ("Unschedulable", "True", "NotEnoughResources", text))


def report_ready(job: Job) -> None:
    _put(job.conditions, ("Scheduled", "True", READY, ""))


def _put(conditions: list[Condition], new: Condition) -> None:
    """Replace the condition of the same type, or append."""
    for i, old in enumerate(conditions):
        if old[0] == new[0]:
            conditions[i] = new
            return
    conditions.append(new)
