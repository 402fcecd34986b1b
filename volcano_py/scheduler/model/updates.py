"""Which updates of pods, PodGroups and Queues are relevant for scheduling. Volcano rebuilds its TaskInfo for each of
them.

Most updates of a running pod report restarts, states and readiness of its containers, which the scheduler does not
read: of a container's status it reads only the allocated resources (in-place resize). The update after a status that
the scheduler wrote itself contains what the model has already assumed.
"""

from __future__ import annotations

from volcano_py.api.core import ContainerStatus, Pod, PodStatus
from volcano_py.api.meta import Condition, ObjectMeta
from volcano_py.api.scheduling import PodGroup, Queue
from volcano_py.scheduler.model.claims.demand import NONE
from volcano_py.scheduler.model.jobs.group_names import group_of
from volcano_py.scheduler.model.jobs.job import Job
from volcano_py.scheduler.model.jobs.task import Task

_OF_CONTAINERS = ("container_statuses", "init_container_statuses")
_TEXTS = ("message", "pod_ip", "host_ip")
_READINESS = frozenset(("Ready", "ContainersReady", "Initialized", "PodReadyToStartContainers"))
"""Conditions that kubelet derives from the states of containers."""
_COMPARED = tuple(n for n in PodStatus.__struct_fields__ if n not in (*_OF_CONTAINERS, *_TEXTS, "conditions"))


def changes_scheduling(old: Pod, new: Pod) -> bool:
    """Whether an update changes what the model has derived from the pod, or what a decision depends on. Otherwise the
    pod is only replaced."""
    a, b = old.status, new.status
    return (
        not _same_but_version(old.metadata, new.metadata)
        or old.spec != new.spec
        or any(getattr(a, name) != getattr(b, name) for name in _COMPARED)
        or (a.conditions != b.conditions and _stated(a) != _stated(b))
        or any(_given(getattr(a, name)) != _given(getattr(b, name)) for name in _OF_CONTAINERS)
    )


def is_newer(old: Pod, new: Pod) -> bool:
    """Whether a pod is certainly a newer version: what was read for an unknown outcome may be ahead of the watch."""
    a, b = old.metadata.resource_version, new.metadata.resource_version
    return a.isdecimal() and b.isdecimal() and int(b) > int(a)


def same_place(old: Task, new: Task, job: Job | None) -> bool:
    """Whether a task keeps its class, job and node. Not of a plain pod, before or after: its substitute for a PodGroup
    depends on it."""
    return (
        (old.spec_class, old.job, old.node, old.uid) == (new.spec_class, new.job, new.node, new.uid)
        and old.claims is new.claims is NONE
        and bool(group_of(old.pod)) == bool(group_of(new.pod))
        and (job is None or not job.shadow)
    )


def repeats(old: PodGroup | None, new: PodGroup) -> bool:
    """Whether only the version differs."""
    if old is None or not _same_but_version(old.metadata, new.metadata):
        return False
    return old.spec == new.spec and old.status == new.status


def counts_only(old: Queue, new: Queue) -> bool:
    """Whether nothing differs but the version and the counts in the status."""
    same = _same_but_version(old.metadata, new.metadata)
    return same and old.spec == new.spec and old.status.state == new.status.state


def _same_but_version(old: ObjectMeta, new: ObjectMeta) -> bool:
    """Whether only the resourceVersion differs. The older object keeps its version afterwards: it may be in the store
    of an informer, when the newer one was read while the watch was behind."""
    version = old.resource_version
    old.resource_version = new.resource_version
    same = old == new
    old.resource_version = version
    return same


def _stated(status: PodStatus) -> list[Condition]:
    """The conditions that do not concern containers."""
    return [c for c in status.conditions or () if c.type not in _READINESS]


def _given(statuses: list[ContainerStatus] | None) -> list[tuple[object, ...]]:
    """The allocated resources of each container, where its status contains them."""
    stated = (s for s in statuses or () if s.allocated_resources is not None or s.resources is not None)
    return [(s.name, s.allocated_resources, s.resources) for s in stated]
