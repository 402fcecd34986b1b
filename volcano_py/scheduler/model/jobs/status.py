"""The states of a task, as small integers that are stored in arrays. Volcano: TaskStatus."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum


class TaskStatus(IntEnum):
    Pending = 0
    Allocated = 1
    Pipelined = 2
    Binding = 3
    Bound = 4
    Running = 5
    Releasing = 6
    Succeeded = 7
    Failed = 8
    Unknown = 9


# Plain integers: comparing an IntEnum member costs four times as much, and these are compared per pod.
PENDING = 0
ALLOCATED = 1
PIPELINED = 2
BINDING = 3
BOUND = 4
RUNNING = 5
RELEASING = 6
SUCCEEDED = 7
FAILED = 8
UNKNOWN = 9

STATUS_NAMES = tuple(s.name for s in TaskStatus)
IS_ALLOCATED = tuple(s in (BOUND, BINDING, RUNNING, ALLOCATED) for s in range(10))
"""The task holds capacity on its node."""
READY = (BOUND, BINDING, RUNNING, ALLOCATED, SUCCEEDED)
"""What counts towards a gang's minimum."""

NO_TASKS: Sequence[int] = (0,) * 10
"""Numbers of tasks by status: the shared one of jobs that have no such tasks."""


def counted(counts: Sequence[int], status: int, change: int) -> list[int]:
    """Numbers of tasks by status after a change: in place, unless they are `NO_TASKS`."""
    found = counts if isinstance(counts, list) else list(counts)
    found[status] += change
    return found


def of_pod(phase: str | None, deleting: bool, node: str | None) -> int:
    """The scheduler's status of a pod as the API server returns it."""
    if phase == "Running":
        return RELEASING if deleting else RUNNING
    if phase == "Pending":
        if deleting:
            return RELEASING
        return BOUND if node else PENDING
    return {"Succeeded": SUCCEEDED, "Failed": FAILED}.get(phase or "", UNKNOWN)
