"""What is kept of each watched object: the fields that pages show, in the API's own shape.

Objects are decoded as the structs of `volcano_py.api` first, so that one that does not decode is reported; then the
rest of them is dropped. The shape is that of manifests, which the models of `vcctl` read, too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from math import inf
from typing import Any, NamedTuple

from msgspec import field

from volcano_py.api import batch, core, gang, reservation, scheduling, topology
from volcano_py.api.codec import to_manifest
from volcano_py.api.kinds import (
    COMPOSITE_PODGROUP,
    EVENT,
    HYPERNODE,
    JOB,
    NATIVE_PODGROUP,
    NATIVE_PODGROUPS,
    NODE,
    POD,
    PODGROUP,
    QUEUE,
    RESERVATION,
    ResourceType,
)
from volcano_py.api.meta import ApiObject, ApiType, ObjectMeta, ObjectReference
from volcano_py.api.names import GROUP_NAME
from volcano_py.api.run_time import stated_run_time
from volcano_py.cli import queue_tree
from volcano_py.scheduler.model.jobs.group_names import NATIVE
from volcano_py.scheduler.model.jobs.pod_request import pod_request

Manifest = dict[str, Any]
_TASK = "volcano.sh/task-spec"
_ENDED = ("Succeeded", "Failed")
"""Phases of pods that hold nothing."""


class EventSource(ApiType):
    component: str = ""


class SeenEvent(ApiObject):
    """An Event, as far as pages show it. `related`: for an eviction, the PodGroup that the pod is evicted for."""

    involved_object: ObjectReference = field(default_factory=ObjectReference)
    related: ObjectReference | None = None
    reason: str = ""
    message: str = ""
    count: int | None = None
    first_timestamp: str | None = None
    last_timestamp: str | None = None
    event_time: str | None = None
    source: EventSource | None = None


def _metadata(found: ObjectMeta) -> Manifest:
    kept: Manifest = {
        "name": found.name,
        "namespace": sys.intern(found.namespace),
        "uid": found.uid,
        "resourceVersion": found.resource_version,
        "creationTimestamp": found.creation_timestamp,
    }
    if found.deletion_timestamp:
        kept["deletionTimestamp"] = found.deletion_timestamp
    if owner := found.controller:
        kept["ownerReferences"] = [{"kind": sys.intern(owner.kind), "name": owner.name, "uid": owner.uid}]
    return kept


def _limit(found: ObjectMeta) -> Manifest:
    """How long a job may run in seconds, where it states that."""
    seconds = stated_run_time(found.annotations or {}, found.labels or {})
    return {} if seconds is None or seconds == inf else {"maxRunTime": seconds}


def queue(found: scheduling.Queue) -> Manifest:
    """A queue: all but its annotations."""
    whole = to_manifest(found)
    return {"metadata": _metadata(found.metadata), "spec": whole.get("spec", {}), "status": whole.get("status", {})}


def group(found: scheduling.PodGroup) -> Manifest:
    """A PodGroup: queue, gang and the conditions that hold."""
    spec, status = found.spec, found.status
    kept = [
        {
            "type": sys.intern(c.type),
            "status": c.status,
            "reason": sys.intern(c.reason),
            "message": c.message,
            "lastTransitionTime": c.last_transition_time,
        }
        for c in status.conditions or ()
        if c.status == "True"
    ]
    return {
        "metadata": _metadata(found.metadata) | _limit(found.metadata),
        "spec": {
            "queue": sys.intern(spec.queue),
            "minMember": spec.min_member,
            "priorityClassName": sys.intern(spec.priority_class_name),
            "minResources": dict(spec.min_resources or {}) if status.phase == scheduling.INQUEUE else {},
        },
        "status": {"phase": sys.intern(status.phase), "running": status.running, "conditions": kept},
    }


def job(found: batch.Job) -> Manifest:
    """A Job: roles, phase, and when it had which phase."""
    spec, status = found.spec, found.status
    return {
        "metadata": _metadata(found.metadata) | _limit(found.metadata),
        "spec": {
            "queue": sys.intern(spec.queue),
            "minAvailable": spec.min_available,
            "priorityClassName": sys.intern(spec.priority_class_name),
            "schedulerName": sys.intern(spec.scheduler_name),
            "tasks": [{"name": sys.intern(t.name), "replicas": t.replicas} for t in spec.tasks or ()],
        },
        "status": {
            "state": {"phase": sys.intern(status.state.phase), "message": status.state.message},
            "running": status.running,
            "conditions": [
                {"status": sys.intern(c.status), "lastTransitionTime": c.last_transition_time}
                for c in status.conditions or ()
            ],
        },
    }


def pod(found: core.Pod) -> Manifest:
    """A pod: where it is, what it requests while it is there (`held`), its PodGroup, and why it waits."""
    metadata, status = found.metadata, found.status
    annotations = metadata.annotations or {}
    native = found.spec.scheduling_group
    node = found.spec.node_name
    held: queue_tree.Amounts = {}
    if node and status.phase not in _ENDED:
        try:
            held = queue_tree.amounts(pod_request(found).quantities())
        except ValueError:
            held = {}  # the scheduler quarantines it
    waiting = next((c for c in status.conditions or () if c.type == "PodScheduled" and c.status == "False"), None)
    return {
        "metadata": _metadata(metadata),
        "nodeName": sys.intern(node),
        "holder": sys.intern(node) if held else "",
        "held": held,
        "phase": "Terminating" if metadata.deletion_timestamp else sys.intern(status.phase or "Pending"),
        "group": sys.intern(f"{NATIVE}/{native.pod_group_name}" if native else annotations.get(GROUP_NAME, "")),
        "role": sys.intern(annotations.get(_TASK, "")),
        "restarts": sum(c.restart_count for c in status.container_statuses or ()),
        "why": waiting.message if waiting is not None and not node else "",
    }


def node(found: core.Node) -> Manifest:
    """A node: what it has, its labels (for HyperNodes) and whether it takes pods."""
    ready = [{"type": c.type, "status": c.status} for c in found.status.conditions or () if c.type == "Ready"]
    return {
        "metadata": _metadata(found.metadata) | {"labels": dict(found.metadata.labels or {})},
        "spec": {"unschedulable": found.spec.unschedulable},
        "status": {"allocatable": dict(found.status.allocatable or {}), "conditions": ready},
    }


def event(found: SeenEvent) -> Manifest:
    """An Event of an eviction."""
    related = found.related or ObjectReference()
    return {
        "metadata": _metadata(found.metadata),
        "pod": (found.involved_object.namespace, found.involved_object.name),
        "evictor": (related.namespace, related.name) if related.name else None,
        "message": found.message,
        "time": found.last_timestamp or found.event_time or found.first_timestamp or "",
        "reason": sys.intern(found.reason),
    }


def whole(found: Any) -> Any:
    """A HyperNode, a native group or a Reservation: the models of the forest and of the tree need it as it is."""
    return found


class Kind(NamedTuple):
    """A kind to watch. `reason`: of Events on pods. `versions`: of a kind that most clusters do not serve. `own_page`:
    only one page shows it, which states that it may not be listed."""

    name: str
    rt: ResourceType
    type: Any
    prepare: Callable[[Any], Any]
    reason: str = ""
    versions: tuple[ResourceType, ...] = ()
    own_page: bool = False

    @property
    def plural(self) -> str:
        """Its name in messages."""
        return f"{self.rt.plural}.{self.rt.group}" if self.versions else self.rt.plural


WATCHED = (
    Kind("queues", QUEUE, scheduling.Queue, queue),
    Kind("podgroups", PODGROUP, scheduling.PodGroup, group),
    Kind("native", NATIVE_PODGROUP, gang.PodGroup, whole, versions=NATIVE_PODGROUPS),
    Kind("composites", COMPOSITE_PODGROUP, gang.CompositePodGroup, whole, versions=(COMPOSITE_PODGROUP,)),
    Kind("jobs", JOB, batch.Job, job),
    Kind("nodes", NODE, core.Node, node),
    Kind("hypernodes", HYPERNODE, topology.HyperNode, whole),
    Kind("pods", POD, core.Pod, pod),
    Kind("reservations", RESERVATION, reservation.Reservation, whole, versions=(RESERVATION,), own_page=True),
    Kind("evictions", EVENT, SeenEvent, event, "Evict"),
    Kind("preemptions", EVENT, SeenEvent, event, "Preempted"),
)
