"""The paths of admission: what each is asked about, and what it answers. Volcano: the webhook manager's table.

`judge` is the one door to all rules: the webhook server, the sandbox's API server and `vcctl --dry-run` go through it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from volcano_py.api import kinds, names
from volcano_py.api.kinds import ResourceType
from volcano_py.webhooks import jobs, podgroups, pods, queues
from volcano_py.webhooks.cronjobs import validate_cronjob
from volcano_py.webhooks.hypernodes import validate_hypernode
from volcano_py.webhooks.jobflows import validate_jobflow
from volcano_py.webhooks.lookup import Manifest, QueueIndex, Queues
from volcano_py.webhooks.queues import MAX_DEPTH

CREATE, UPDATE, DELETE = "CREATE", "UPDATE", "DELETE"


class Namespaces(Protocol):
    """Asked for the annotations of a namespace."""

    def get(self, name: str, /) -> Manifest | None:
        """The namespace of this name."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the rules may look at beside the request: the cluster, and how admission is configured."""

    queues: Queues = field(default_factory=QueueIndex)
    namespaces: Namespaces = field(default_factory=lambda: dict[str, Manifest]())
    scheduler_names: Sequence[str] = (names.SCHEDULER_NAME,)
    resource_groups: Sequence[pods.ResourceGroup] | None = ()
    """None: no configuration was ever read. Then /pods/mutate changes nothing."""
    max_queue_depth: int = MAX_DEPTH
    protect_root_queue: bool = True
    check_allocated_pods: bool = False
    feature_gates: Mapping[str, bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Asked:
    """One request: what is to be done with which object."""

    operation: str
    obj: Manifest | None = None
    old: Manifest | None = None
    name: str = ""
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is wrong (nothing: allowed), and for the paths that mutate what the object becomes."""

    problems: Sequence[str] = ()
    obj: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Path:
    """`webhook` is the name under which the API server knows the rule; the names are those of Volcano's chart."""

    path: str
    webhook: str
    rt: ResourceType
    operations: tuple[str, ...]
    rule: Callable[[Asked, Surroundings], Verdict]

    @property
    def mutates(self) -> bool:
        return self.path.endswith("/mutate")


def _job_mutate(asked: Asked, around: Surroundings) -> Verdict:
    return Verdict(obj=jobs.mutate_job(_object(asked), around.scheduler_names[0]))


def _job_validate(asked: Asked, around: Surroundings) -> Verdict:
    if asked.operation == CREATE:
        gate = around.feature_gates.get("PodLevelResources", True)
        return Verdict(jobs.validate_job_create(_object(asked), around.queues, pod_level_resources=gate))
    return Verdict(jobs.validate_job_update(asked.old or {}, _object(asked)))


def _queue_mutate(asked: Asked, around: Surroundings) -> Verdict:
    return Verdict(obj=queues.mutate_queue(_object(asked)))


def _queue_validate(asked: Asked, around: Surroundings) -> Verdict:
    if asked.operation == DELETE:
        name = asked.name or (asked.old or {}).get("metadata", {}).get("name", "")
        check = around.check_allocated_pods
        return Verdict(queues.validate_queue_delete(name, around.queues, check_allocated_pods=check))
    depth, protect = around.max_queue_depth, around.protect_root_queue
    return Verdict(
        queues.validate_queue(_object(asked), around.queues, asked.old, max_depth=depth, protect_root=protect)
    )


def _podgroup_mutate(asked: Asked, around: Surroundings) -> Verdict:
    return Verdict(obj=podgroups.mutate_podgroup(_object(asked), around.namespaces.get(asked.namespace)))


def _podgroup_validate(asked: Asked, around: Surroundings) -> Verdict:
    return Verdict(podgroups.validate_podgroup(_object(asked), around.queues))


def _pod_mutate(asked: Asked, around: Surroundings) -> Verdict:
    if around.resource_groups is None:
        return Verdict()
    gate = around.feature_gates.get(pods.QUEUE_GATE, False)
    pod = _object(asked)
    if asked.namespace and not (pod.get("metadata") or {}).get("namespace"):
        pod = {**pod, "metadata": {**(pod.get("metadata") or {}), "namespace": asked.namespace}}
        made = pods.mutate_pod(pod, around.resource_groups, queue_gate=gate)
        del made["metadata"]["namespace"]  # the API server fills it in
        return Verdict(obj=made)
    return Verdict(obj=pods.mutate_pod(pod, around.resource_groups, queue_gate=gate))


def _pod_validate(asked: Asked, around: Surroundings) -> Verdict:
    return Verdict(pods.validate_pod(_object(asked), around.scheduler_names))


def _alone(rule: Callable[[Manifest], list[str]]) -> Callable[[Asked, Surroundings], Verdict]:
    """A rule that looks at nothing but the new object."""
    return lambda asked, around: Verdict(rule(_object(asked)))


def _object(asked: Asked) -> Manifest:
    if asked.obj is None:
        raise ValueError(f"request.object is missing from a {asked.operation}")
    return asked.obj


_BOTH = (CREATE, UPDATE)

PATHS: dict[str, Path] = {
    path.path: path
    for path in (
        Path("/jobs/mutate", "mutatejob", kinds.JOB, (CREATE,), _job_mutate),
        Path("/jobs/validate", "validatejob", kinds.JOB, _BOTH, _job_validate),
        Path("/queues/mutate", "mutatequeue", kinds.QUEUE, (CREATE,), _queue_mutate),
        Path("/queues/validate", "validatequeue", kinds.QUEUE, (*_BOTH, DELETE), _queue_validate),
        Path("/podgroups/mutate", "mutatepodgroup", kinds.PODGROUP, (CREATE,), _podgroup_mutate),
        Path("/podgroups/validate", "validatepodgroup", kinds.PODGROUP, (CREATE,), _podgroup_validate),
        Path("/pods/mutate", "mutatepod", kinds.POD, (CREATE,), _pod_mutate),
        Path("/pods/validate", "validatepod", kinds.POD, (CREATE,), _pod_validate),
        Path("/hypernodes/validate", "validatehypernodes", kinds.HYPERNODE, _BOTH, _alone(validate_hypernode)),
        Path("/cronjobs/validate", "validatecronjob", kinds.CRONJOB, _BOTH, _alone(validate_cronjob)),
        Path("/jobflows/validate", "validatejob", kinds.JOBFLOW, _BOTH, _alone(validate_jobflow)),
    )
}
"""Every path there is, in the order in which they are listed for users."""

_MISSHAPEN = (TypeError, AttributeError, KeyError, ValueError, IndexError, RecursionError)
"""What rules raise for an object of a wrong shape; the API server checks schemas only afterwards."""


def judge(path: Path, asked: Asked, around: Surroundings) -> Verdict:
    """What a path answers. An object of a wrong shape is refused; one that is being deleted is left to go."""
    if problem := check_operation(path, asked.operation):
        return Verdict([problem])
    try:
        if asked.operation == UPDATE and ((asked.obj or {}).get("metadata") or {}).get("deletionTimestamp"):
            return Verdict()
        return path.rule(asked, around)
    except _MISSHAPEN as error:
        return Verdict([f"the object cannot be read: {error}; compare it with `kubectl explain {path.rt.plural}`"])


def check_operation(path: Path, operation: str) -> str:
    """Why a path has no answer to an operation, or an empty text. It is asked only if the configuration is wrong."""
    if operation in path.operations:
        return ""
    *first, last = (f"`{name}`" for name in path.operations)
    listed = f"{', '.join(first)} or {last}" if first else last
    why = f"invalid operation `{operation}`, expect operation to be {listed}"
    return f"{why}: look at the rules of {path.path}'s webhook"
