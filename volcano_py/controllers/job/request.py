"""The requests of a Job, and the actions that its lifecycle policies select for them.

Volcano: job controller, applyPolicies.
"""

from __future__ import annotations

from msgspec import Struct

from volcano_py.api import bus
from volcano_py.api.batch import Job, LifecyclePolicy
from volcano_py.api.duration import parse_duration

INTERNAL_EVENTS = frozenset((bus.OUT_OF_SYNC, bus.COMMAND_ISSUED, bus.POD_RUNNING))
"""Events that policies cannot use."""

_LEVEL = {
    bus.RESTART_TASK: "task",
    bus.RESTART_POD: "pod",
    bus.RESTART_PARTITION: "partition",
}


class Request(Struct, frozen=True):
    """One event of a Job; equal requests are processed once."""

    event: str = ""
    action: str = ""
    """Set for actions that a user requests; policies then do not apply."""
    job_uid: str = ""
    job_version: int | None = None
    """The Job's version when the pod was created; older than the Job's: the pod was created before a restart."""
    task: str = ""
    pod: str = ""
    pod_uid: str = ""
    partition: str = ""
    exit_code: int | None = None
    evicted: bool = False
    """A pod was evicted or lost; it did not fail."""
    message: str = ""
    """Why the action is executed, for the status and an Event; the event is the reason."""


class Decision(Struct, frozen=True):
    """The action to execute, after `delay` seconds."""

    action: str
    delay: float = 0.0
    counts: bool = True
    """Whether a restart counts against `maxRetry`. Only failures do: not evictions, and not what a user requests."""

    @property
    def level(self) -> str:
        """The level of the action: job, task, pod or partition."""
        return _LEVEL.get(self.action, "job")


def decide(job: Job, request: Request) -> Decision:
    """The action for a request; the first matching policy applies, policies of the task first."""
    if request.action:
        return Decision(request.action, counts=not request.evicted and request.event != bus.COMMAND_ISSUED)
    if request.event in INTERNAL_EVENTS:
        return Decision(bus.SYNC_JOB)
    if request.job_uid and request.job_uid != job.metadata.uid:
        return Decision(bus.SYNC_JOB)
    if request.job_version is not None and request.job_version < job.status.version:
        return Decision(bus.SYNC_JOB)
    policies: list[LifecyclePolicy] = []
    for task in job.spec.tasks or ():
        if request.task and task.name == request.task:
            policies.extend(task.policies or ())
    policies.extend(job.spec.policies or ())
    for policy in policies:
        if _matches(policy, request):
            return Decision(policy.action, _timeout(policy), not request.evicted)
    return Decision(bus.SYNC_JOB)


def _matches(policy: LifecyclePolicy, request: Request) -> bool:
    events = {*(policy.events or ()), policy.event} - {""}
    named = bool(request.event) and (request.event in events or bus.ANY_EVENT in events)
    # Pending is a normal state; only a long time in it is an event.
    if named and (request.event != bus.POD_PENDING or policy.timeout is not None):
        return True
    return bool(policy.exit_code) and policy.exit_code == request.exit_code


def _timeout(policy: LifecyclePolicy) -> float:
    try:
        return max(0.0, parse_duration(policy.timeout)) if policy.timeout else 0.0
    except ValueError:
        return 0.0
