"""The store of an informer against the model: a handler may have failed half-way, or an object was put in late."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from volcano_py.scheduler.cache.audit.listed import newer
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.group_names import NATIVE_KINDS
from volcano_py.scheduler.model.jobs.task import Task

_STATUS_IS_ASSUMED = ("PodGroup", *NATIVE_KINDS, "Queue")
"""Kinds whose status the model counts as written before the watch returns it."""


def object_of(model: Cluster, kind: str, key: str) -> Any:
    """The object that the model has; None if it has none."""
    match kind:
        case "Pod":
            task = model.tasks.get(key)
            return None if task is None else task.pod
        case "Node":
            i = model.nodes.index.get(key)
            return None if i is None else model.nodes.objects[i]
        case "PodGroup":
            job = model.jobs.get(key)
            return None if job is None or job.shadow else job.pod_group
        case "Queue":
            queue = model.queues.get(key)
            return None if queue is None else queue.object
        case "PriorityClass":
            return model.priority_classes.get(key)
    if kind in NATIVE_KINDS:
        return model.native_groups.get(kind, key)
    return model.others.get(kind, {}).get(key)


def keys_of(model: Cluster, kind: str) -> Iterable[str]:
    """The keys of the objects that the model has."""
    match kind:
        case "Pod":
            return model.tasks
        case "Node":
            return model.nodes.index
        case "PodGroup":
            return [job.uid for job in model.jobs.values() if not (job.pod_group is None or job.shadow or job.native)]
        case "Queue":
            return model.queues
        case "PriorityClass":
            return model.priority_classes
    if kind in NATIVE_KINDS:
        return model.native_groups.keys(kind)
    return model.others.get(kind, {})


def agrees(model: Cluster, kind: str, key: str, stored: Any) -> bool:
    """Whether the model has an object as the store has it, but for what it assumes. `stored` is None: whether the model
    has no such object."""
    known = object_of(model, kind, key)
    if known is stored:
        return True
    if known is None or stored is None:
        return False
    if known.metadata.uid != stored.metadata.uid:
        return False
    if newer(known.metadata.resource_version, stored.metadata.resource_version):
        return True  # it was read after a bind whose outcome was unknown
    if kind in _STATUS_IS_ASSUMED:
        return bool(_stated(known) == _stated(stored))
    if kind == "Pod" and not stored.spec.node_name:
        status = model.tasks[key].status
        if st.IS_ALLOCATED[status] or status == st.RELEASING:
            return True  # our bind is in flight, or has failed a moment ago, and its pod is evicted
    return bool(known == stored)


def assumed(task: Task) -> str:
    """What the model counts for a task that its pod does not show yet: bind, eviction, or nothing."""
    if task.status == st.BINDING and not task.pod.spec.node_name:
        return "bind"
    if task.status == st.RELEASING and task.pod.metadata.deletion_timestamp is None:
        return "eviction"
    return ""


def _stated(obj: Any) -> tuple[Any, ...]:
    """What users set, and the state of a queue."""
    metadata = msgspec.structs.replace(obj.metadata, resource_version="")
    return metadata, obj.spec, getattr(obj.status, "state", "")
