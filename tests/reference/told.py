"""What is written down for people: why tasks find no node, and the conditions of PodGroups. Volcano: FitErrors,
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
    """Why a task found no node in this session."""

    text: str
    hopeless: frozenset[str] = frozenset()
    """The nodes where no eviction would help."""


def fit_errors(refused: Mapping[str, PredicateError], hyper_node: str = "") -> FitErrors:
    """From what each node said; a node with two reasons counts in both."""
    counts = Counter(reason for error in refused.values() for reason in error.reasons)
    text = f"0/{len(refused)} nodes are unavailable"
    if refused:
        text += ": " + ", ".join(sorted(f"{n} {reason}" for reason, n in counts.items())) + "."
        text = f"In hyperNode {hyper_node}: {text}" if hyper_node else text
    return FitErrors(text, frozenset(name for name, error in refused.items() if error.unresolvable))


def like_its_role(task: Task) -> FitErrors:
    """Another of its role was refused: it is not even tried."""
    return FitErrors(f"Task {task.name} with role spec {task.role} has already predicated failed, skip")


def insufficient(needed: Resource, room: Resource) -> str:
    """The first resource that is lacking. Of others than cpu and memory Volcano takes any."""
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
    refused = [t for t in job.tasks.values() if t.uid in job.fit_errors]
    if refused:  # Volcano takes any
        first = min(refused, key=lambda t: (t.status != "Pending", t.key))
        text += f". Origin reason is {first.name}: {job.fit_errors[first.uid].text}"
    return text


def _reason(task: Task) -> str:
    return "Schedulable" if _tried(task) == "Allocated" else "Unschedulable"


def _tried(task: Task) -> str:
    return task.last_try[0] if task.last_try else task.status


def tell_lacking(job: Job) -> None:
    """The gang is not ready, and why."""
    found = job.ready_task_num() + sum(_tried(t) in ALLOCATED_STATUS for t in job.with_status("Pending"))
    text = f"{job.min_available - found}/{len(job.tasks)} tasks in gang unschedulable: {message_of(job)}"
    _put(job.conditions, ("Unschedulable", "True", "NotEnoughResources", text))


def tell_ready(job: Job) -> None:
    _put(job.conditions, ("Scheduled", "True", READY, ""))


def _put(conditions: list[Condition], new: Condition) -> None:
    """In place of the one of its type, or at the end."""
    for i, old in enumerate(conditions):
        if old[0] == new[0]:
            conditions[i] = new
            return
    conditions.append(new)
