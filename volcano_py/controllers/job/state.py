"""The job state machine, as a table: the operation of each action in each phase, and the next phase.

Volcano: job controller, states. A rule evaluates the counted status, changes its phase and retry count, and returns
whether the phase has changed.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

import msgspec
from msgspec import Struct

from volcano_py.api import batch, bus
from volcano_py.api.batch import JobSpec, JobStatus

Rule = Callable[[JobSpec, JobStatus], bool]

FINISHED = frozenset((batch.COMPLETED, batch.FAILED, batch.TERMINATED))

SOFT = frozenset(("Succeeded", "Failed"))
"""Pod phases that are kept when a Job is stopped: such pods hold no resources, and their logs remain readable."""
NONE: frozenset[str] = frozenset()


class Operation(Enum):
    SYNC = "SyncJob"
    KILL = "KillJob"
    KILL_TARGET = "KillTarget"


class Transition(Struct, frozen=True):
    """The operation of an action in a phase. Without a rule the phase does not change."""

    operation: Operation
    rule: Rule | None = None
    retain: frozenset[str] = NONE


def _move(phase: str) -> Rule:
    def rule(spec: JobSpec, status: JobStatus) -> bool:
        status.state.phase = phase
        return True

    return rule


def _restart(spec: JobSpec, status: JobStatus) -> bool:
    status.state.phase = batch.RESTARTING
    status.retry_count += 1
    return True


def uncounted(step: Transition) -> Transition:
    """The same transition, but a restart does not count against `maxRetry`."""
    return msgspec.structs.replace(step, rule=_move(batch.RESTARTING)) if step.rule is _restart else step


def _once_nothing_lives(phase: str) -> Rule:
    def rule(spec: JobSpec, status: JobStatus) -> bool:
        if status.terminating or status.pending or status.running:
            return False
        status.state.phase = phase
        return True

    return rule


def _started(spec: JobSpec, status: JobStatus) -> bool:
    """Pending: the gang runs, or has finished."""
    if spec.min_available > status.running + status.succeeded + status.failed:
        return False
    status.state.phase = batch.RUNNING
    return True


def retries_are_used_up(spec: JobSpec, status: JobStatus) -> bool:
    """Whether a Job that restarts fails, because `maxRetry` permits no further attempt."""
    return status.retry_count >= spec.max_retry


def _restarted(spec: JobSpec, status: JobStatus) -> bool:
    """Restarting: fail, or become Pending once enough of the old pods have terminated."""
    if retries_are_used_up(spec, status):
        status.state.phase = batch.FAILED
        return True
    if total_replicas(spec) - status.terminating >= status.min_available:
        status.state.phase = batch.PENDING
        return True
    return False


def _progressed(spec: JobSpec, status: JobStatus) -> bool:
    """Running: becomes Completed, Failed or Pending, or stays Running."""
    replicas = total_replicas(spec)
    if replicas == 0:
        return False
    enough = spec.min_success is not None and status.succeeded >= spec.min_success
    if enough:
        status.state.phase = batch.COMPLETED
        return True
    if status.succeeded + status.failed == replicas:
        status.state.phase = batch.COMPLETED if _succeeded(spec, status) else batch.FAILED
        return True
    if status.pending > replicas - spec.min_available:
        status.state.phase = batch.PENDING
        return True
    return False


def _succeeded(spec: JobSpec, status: JobStatus) -> bool:
    """All pods have terminated before minSuccess was reached: Completed or Failed?"""
    if spec.min_available >= total_minimum(spec):
        for task in spec.tasks or ():
            counted = (status.task_status_count or {}).get(task.name)
            if task.min_available is None or counted is None:
                continue
            if (counted.phase or {}).get("Succeeded", 0) < task.min_available:
                return False
    if spec.min_success is not None:
        return False
    return status.succeeded >= spec.min_available


def total_replicas(spec: JobSpec) -> int:
    """Number of pods of the complete Job."""
    return sum(task.replicas for task in spec.tasks or ())


def total_minimum(spec: JobSpec) -> int:
    """Number of pods that the tasks require by their own minimums."""
    return sum(task.replicas if task.min_available is None else task.min_available for task in spec.tasks or ())


_RESTART_TARGET = Transition(Operation.KILL_TARGET, _restart)
_STOP = {
    bus.RESTART_JOB: Transition(Operation.KILL, _restart),
    bus.RESTART_TASK: _RESTART_TARGET,
    bus.RESTART_POD: _RESTART_TARGET,
    bus.RESTART_PARTITION: _RESTART_TARGET,
    bus.ABORT_JOB: Transition(Operation.KILL, _move(batch.ABORTING), SOFT),
    bus.COMPLETE_JOB: Transition(Operation.KILL, _move(batch.COMPLETING), SOFT),
    bus.TERMINATE_JOB: Transition(Operation.KILL, _move(batch.TERMINATING), SOFT),
}
_RESTART_AGAIN = Transition(Operation.KILL_TARGET, _restarted)
_RESUME = {bus.RESUME_JOB: Transition(Operation.KILL, _move(batch.RESTARTING), SOFT)}
"""Not a failure: unlike in Volcano it does not count against `maxRetry`."""
_CLEAN_UP = Transition(Operation.KILL, None, SOFT)

ANY = ""
"""The entry for all actions without their own."""

TABLE: dict[str, dict[str, Transition]] = {
    batch.PENDING: {**_STOP, ANY: Transition(Operation.SYNC, _started)},
    batch.RUNNING: {**_STOP, ANY: Transition(Operation.SYNC, _progressed)},
    batch.RESTARTING: {
        bus.SYNC_JOB: Transition(Operation.SYNC, _restarted),
        bus.RESTART_TASK: _RESTART_AGAIN,
        bus.RESTART_POD: _RESTART_AGAIN,
        bus.RESTART_PARTITION: _RESTART_AGAIN,
        ANY: Transition(Operation.KILL, _restarted),
    },
    batch.ABORTING: {**_RESUME, ANY: Transition(Operation.KILL, _once_nothing_lives(batch.ABORTED), SOFT)},
    batch.ABORTED: {**_RESUME, ANY: _CLEAN_UP},
    batch.COMPLETING: {ANY: Transition(Operation.KILL, _once_nothing_lives(batch.COMPLETED), SOFT)},
    batch.TERMINATING: {ANY: Transition(Operation.KILL, _once_nothing_lives(batch.TERMINATED), SOFT)},
    batch.COMPLETED: {ANY: _CLEAN_UP},
    batch.FAILED: {ANY: _CLEAN_UP},
    batch.TERMINATED: {ANY: _CLEAN_UP},
}


def transition(phase: str, action: str) -> Transition:
    """The transition of `action` in `phase`; an unknown phase is treated as Pending."""
    rows = TABLE.get(phase, TABLE[batch.PENDING])
    return rows.get(action, rows[ANY])
