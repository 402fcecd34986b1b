"""The admission paths: object kind, operations and rules of each. Volcano: the router of the webhook manager.

`evaluate` is the single entry to all rules: the webhook server, the sandbox's API server and `vcctl --dry-run` call it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from volcano_py.api import kinds, names
from volcano_py.api.kinds import ResourceType
from volcano_py.webhooks import commands, jobs, podgroups, pods, queues
from volcano_py.webhooks.access import AccessCheck, AccessQuery, UserInfo
from volcano_py.webhooks.cronjobs import validate_cronjob
from volcano_py.webhooks.hypernodes import validate_hypernode
from volcano_py.webhooks.job_defaults import mutate_job
from volcano_py.webhooks.jobflows import validate_jobflow
from volcano_py.webhooks.lookup import Manifest, QueueIndex, Queues
from volcano_py.webhooks.queues import MAX_DEPTH
from volcano_py.webhooks.reservations import validate_reservation

CREATE, UPDATE, DELETE = "CREATE", "UPDATE", "DELETE"


class Reservations(Protocol):
    """All Reservations."""

    def values(self) -> Iterable[Manifest]: ...


class Namespaces(Protocol):
    """Namespaces by name; the rules read their annotations."""

    def get(self, name: str, /) -> Manifest | None:
        """The namespace with this name, or None."""


@dataclass(frozen=True, slots=True)
class AdmissionContext:
    """Input of the rules besides the request: the state of the cluster, and the admission configuration."""

    queues: Queues = field(default_factory=QueueIndex)
    namespaces: Namespaces = field(default_factory=lambda: dict[str, Manifest]())
    reservations: Reservations = field(default_factory=lambda: dict[str, Manifest]())
    now: Callable[[], float] = time.time
    """Seconds since the epoch."""
    scheduler_names: Sequence[str] = (names.SCHEDULER_NAME,)
    resource_groups: Sequence[pods.ResourceGroup] | None = ()
    """None: no configuration was loaded yet. /pods/mutate then changes nothing."""
    max_queue_depth: int = MAX_DEPTH
    protect_root_queue: bool = True
    check_allocated_pods: bool = False
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    access: AccessCheck | None = None
    """None: no access can be checked, and none is granted."""
    granted: bool = False
    """The result of the access check of the request; see `with_access`."""


@dataclass(frozen=True, slots=True)
class AdmissionRequest:
    """One admission request: the operation and its object."""

    operation: str
    obj: Manifest | None = None
    old: Manifest | None = None
    name: str = ""
    namespace: str = ""
    user: UserInfo = field(default_factory=UserInfo)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The problems (empty: the request is allowed). For paths that mutate, also the changed object."""

    problems: Sequence[str] = ()
    obj: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Path:
    """`webhook` is the name of the webhook in the webhook configuration; the names are those of Volcano's chart."""

    path: str
    webhook: str
    rt: ResourceType
    operations: tuple[str, ...]
    rule: Callable[[AdmissionRequest, AdmissionContext], Verdict]
    access: Callable[[AdmissionRequest], AccessQuery | None] | None = None
    """The access check that a request needs before the rule."""
    every_namespace: bool = False
    """The webhook applies in all namespaces, also in those that the others skip."""

    @property
    def mutates(self) -> bool:
        return self.path.endswith("/mutate")


def _job_mutate(request: AdmissionRequest, context: AdmissionContext) -> Verdict:
    old = request.old if request.operation == UPDATE else None
    return Verdict(obj=mutate_job(_object(request), context.scheduler_names[0], old))


def _job_validate(request: AdmissionRequest, context: AdmissionContext) -> Verdict:
    if request.operation == CREATE:
        gate = context.feature_gates.get("PodLevelResources", True)
        return Verdict(jobs.validate_job_create(_object(request), context.queues, pod_level_resources=gate))
    return Verdict(jobs.validate_job_update(request.old or {}, _object(request), context.scheduler_names[0]))


def _queue_mutate(request: AdmissionRequest, context: AdmissionContext) -> Verdict:
    return Verdict(obj=queues.mutate_queue(_object(request)))


def _queue_validate(request: AdmissionRequest, context: AdmissionContext) -> Verdict:
    if request.operation == DELETE:
        name = request.name or (request.old or {}).get("metadata", {}).get("name", "")
        check = context.check_allocated_pods
        return Verdict(queues.validate_queue_delete(name, context.queues, check_allocated_pods=check))
    depth, protect = context.max_queue_depth, context.protect_root_queue
    return Verdict(
        queues.validate_queue(_object(request), context.queues, request.old, max_depth=depth, protect_root=protect)
    )


def _podgroup_mutate(request: AdmissionRequest, context: AdmissionContext) -> Verdict:
    return Verdict(obj=podgroups.mutate_podgroup(_object(request), context.namespaces.get(request.namespace)))


def _podgroup_validate(request: AdmissionRequest, context: AdmissionContext) -> Verdict:
    return Verdict(podgroups.validate_podgroup(_object(request), context.queues))


def _pod_mutate(request: AdmissionRequest, context: AdmissionContext) -> Verdict:
    pod = _object(request)
    groups = context.resource_groups
    if groups is None:
        if not pods.requests_native_group(pod):
            return Verdict()
        groups = ()
    gate = context.feature_gates.get(pods.QUEUE_GATE, False)
    if request.namespace and not (pod.get("metadata") or {}).get("namespace"):
        pod = {**pod, "metadata": {**(pod.get("metadata") or {}), "namespace": request.namespace}}
        mutated = pods.mutate_pod(pod, groups, queue_gate=gate)
        del mutated["metadata"]["namespace"]  # the API server sets it
        return Verdict(obj=mutated)
    return Verdict(obj=pods.mutate_pod(pod, groups, queue_gate=gate))


def _pod_validate(request: AdmissionRequest, context: AdmissionContext) -> Verdict:
    return Verdict(pods.validate_pod(_object(request), context.scheduler_names))


def _reservation_validate(request: AdmissionRequest, context: AdmissionContext) -> Verdict:
    old = request.old if request.operation == UPDATE else None
    return Verdict(validate_reservation(_object(request), context.reservations.values(), context.now(), old))


def _command_access(request: AdmissionRequest) -> AccessQuery | None:
    return commands.query_of(_object(request), request.user)


def _command_mutate(request: AdmissionRequest, context: AdmissionContext) -> Verdict:
    command = _object(request)
    problems = commands.validate_command(command, context.granted, request.user.name)
    return Verdict(problems, commands.mutate_command(command, context.granted, request.user.name))


def _alone(rule: Callable[[Manifest], list[str]]) -> Callable[[AdmissionRequest, AdmissionContext], Verdict]:
    """A rule that reads only the new object."""
    return lambda request, context: Verdict(rule(_object(request)))


def _object(request: AdmissionRequest) -> Manifest:
    if request.obj is None:
        raise ValueError(f"request.object is missing from a {request.operation}")
    return request.obj


_BOTH = (CREATE, UPDATE)

PATHS: dict[str, Path] = {
    path.path: path
    for path in (
        Path("/jobs/mutate", "mutatejob", kinds.JOB, _BOTH, _job_mutate),
        Path("/jobs/validate", "validatejob", kinds.JOB, _BOTH, _job_validate),
        Path("/queues/mutate", "mutatequeue", kinds.QUEUE, _BOTH, _queue_mutate),
        Path("/queues/validate", "validatequeue", kinds.QUEUE, (*_BOTH, DELETE), _queue_validate),
        Path("/podgroups/mutate", "mutatepodgroup", kinds.PODGROUP, (CREATE,), _podgroup_mutate),
        Path("/podgroups/validate", "validatepodgroup", kinds.PODGROUP, (CREATE,), _podgroup_validate),
        Path("/pods/mutate", "mutatepod", kinds.POD, (CREATE,), _pod_mutate),
        Path("/pods/validate", "validatepod", kinds.POD, (CREATE,), _pod_validate),
        Path("/hypernodes/validate", "validatehypernodes", kinds.HYPERNODE, _BOTH, _alone(validate_hypernode)),
        Path("/cronjobs/validate", "validatecronjob", kinds.CRONJOB, _BOTH, _alone(validate_cronjob)),
        Path("/jobflows/validate", "validatejob", kinds.JOBFLOW, _BOTH, _alone(validate_jobflow)),
        Path("/reservations/validate", "validatereservation", kinds.RESERVATION, _BOTH, _reservation_validate),
        Path("/commands/mutate", "mutatecommand", kinds.COMMAND, _BOTH, _command_mutate, _command_access, True),
    )
}
"""All paths, in the order in which they are listed for users."""

MOST_PROBLEMS = 50
LONGEST_PROBLEM = 2000
"""Characters of one problem."""

_MISSHAPEN = (TypeError, AttributeError, KeyError, ValueError, IndexError, RecursionError)
"""Exceptions that rules raise for malformed objects; the API server validates the schema later."""


async def with_access(path: Path, request: AdmissionRequest, context: AdmissionContext) -> AdmissionContext:
    """The context with the result of the access check that the request needs. Raises KubeError."""
    if path.access is None or context.access is None:
        return context
    try:
        query = path.access(request)
    except _MISSHAPEN:
        return context  # the rule reports it
    return context if query is None else replace(context, granted=await context.access(query))


def evaluate(path: Path, request: AdmissionRequest, context: AdmissionContext) -> Verdict:
    """Evaluate a request. Malformed objects are denied; updates of objects that are being deleted are allowed."""
    if problem := check_operation(path, request.operation):
        return Verdict([problem])
    try:
        if request.operation == UPDATE and ((request.obj or {}).get("metadata") or {}).get("deletionTimestamp"):
            return Verdict()
        verdict = path.rule(request, context)
    except _MISSHAPEN as error:
        return Verdict(
            [shortened(f"the object is malformed: {error}; compare it with `kubectl explain {path.rt.plural}`")]
        )
    return Verdict(_few(verdict.problems), verdict.obj) if verdict.problems else verdict


def _few(problems: Sequence[str]) -> Sequence[str]:
    """Some problems of an object that has very many: a response must not be larger than its request."""
    more = len(problems) - MOST_PROBLEMS
    shown = [shortened(problem) for problem in problems[:MOST_PROBLEMS]]
    return [*shown, f"and {more} more problems"] if more > 0 else shown


def shortened(problem: str) -> str:
    """A problem without the middle of a very long value."""
    if len(problem) <= LONGEST_PROBLEM:
        return problem
    half = LONGEST_PROBLEM // 2
    return f"{problem[:half]} [...] {problem[-half:]}"


def check_operation(path: Path, operation: str) -> str:
    """The problem of an operation that the path does not support, or an empty string.

    Only a misconfigured webhook sends such a request.
    """
    if operation in path.operations:
        return ""
    *first, last = (f"`{name}`" for name in path.operations)
    listed = f"{', '.join(first)} or {last}" if first else last
    why = f"invalid operation `{operation}`, expect operation to be {listed}"
    return f"{why}: check the rules of the webhook for {path.path}"
