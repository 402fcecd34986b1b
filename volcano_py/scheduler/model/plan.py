"""The plan: the decisions of a cycle, as data. Volcano: the calls of the cache's Binder, Evictor and StatusUpdater.

A cycle emits its plan statement by statement (`emit(operations)`), while it runs. The operations of one call
belong together: they are the binds of one gang, or the evictions and nominations for one evictor.
The dispatcher writes them; the model assumes them (`Cluster.assume`) and forgets those that fail
(`Cluster.forget`).

Operations are plain msgspec structs with a tag, so that a list of them is sent through a pipe as MessagePack:
`msgspec.msgpack.encode(ops)` and `msgspec.msgpack.Decoder(list[Operation])`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from volcano_py.scheduler.model.jobs.group_names import NATIVE
from volcano_py.scheduler.model.jobs.pre_bind import PreBindStep


class Bind(Struct, tag_field="op", tag="bind", frozen=True, gc=False):
    """Bind a pod to a node: POST pods/binding with these annotations on the Binding."""

    namespace: str
    name: str
    uid: str
    node: str
    group: str
    """The job, `namespace/podgroup`; members of one gang share it."""
    annotations: dict[str, str] | None = None
    steps: tuple[PreBindStep, ...] = ()
    """The pre-bind steps, in this order."""
    barrier: str = ""
    """Binds of one statement with the same value wait for the steps of all of them; empty: only for their own."""


class RemoveGate(Struct, tag_field="op", tag="remove-gate", frozen=True, gc=False):
    """Remove Volcano's queue-admission gate from a pod: its queue has capacity for it."""

    namespace: str
    name: str
    uid: str


class Evict(Struct, tag_field="op", tag="evict", frozen=True, gc=False):
    """Evict a pod: conditions Ready=False and DisruptionTarget=True, then DELETE with a uid precondition."""

    namespace: str
    name: str
    uid: str
    group: str
    reason: str
    """The action that evicts, as in the event `Pod is evicted, because of REASON`."""
    evictor: str = ""
    """The job for which the pod is evicted, `namespace/podgroup`."""
    event: str = ""
    """Text of the Event `Preempted` when a profile evicts the pod; empty: a session does, with the Event `Evict`."""
    has_group: bool = True
    """Whether the PodGroup of the job is an object, which gets an Event, too: false for plain pods without one."""


class PodCondition(Struct, tag_field="op", tag="pod-condition", frozen=True, gc=False):
    """Write PodScheduled=False with reason and message, and the nominated node if it is set."""

    namespace: str
    name: str
    uid: str
    reason: str
    message: str
    nominated_node: str = ""


class Nomination(Struct, tag_field="op", tag="nomination", frozen=True, gc=False):
    """Write status.nominatedNodeName of a pod; an empty node removes it."""

    namespace: str
    name: str
    uid: str
    node: str


class PodGroupStatus(Struct, tag_field="op", tag="podgroup-status", frozen=True, gc=False):
    """Replace the status of a PodGroup (phase, conditions, running, succeeded, failed)."""

    namespace: str
    name: str
    uid: str
    status: dict[str, Any]
    urgent: bool = False
    """True when the phase becomes Inqueue: the job controller creates pods only then."""
    resource_version: str = ""
    """The version of the PodGroup that the decision is based on: nothing is written if it has changed since."""


class NativeGroupStatus(Struct, tag_field="op", tag="native-group-status", frozen=True, gc=False):
    """Set conditions of a PodGroup or CompositePodGroup of scheduling.k8s.io; those of other types stay."""

    namespace: str
    name: str
    uid: str
    conditions: list[dict[str, str]]
    api_version: str = "scheduling.k8s.io/v1alpha2"
    """The version in which the cluster serves the kind."""
    kind: str = NATIVE
    """The kind in the model."""


class QueueStatus(Struct, tag_field="op", tag="queue-status", frozen=True, gc=False):
    """Write status.allocated of a queue."""

    name: str
    allocated: dict[str, str]
    resource_version: str = ""
    """The version of the queue that the decision is based on: nothing is written if it has changed since."""


class Event(Struct, tag_field="op", tag="event", frozen=True, gc=False):
    """An Event on an object. `type` is Normal or Warning."""

    kind: str
    namespace: str
    name: str
    uid: str
    type: str
    reason: str
    message: str
    related: str = ""
    """The job that the Event also concerns, as `Evict.evictor`."""


Operation = (
    Bind | RemoveGate | Evict | PodCondition | Nomination | PodGroupStatus | NativeGroupStatus | QueueStatus | Event
)
Emit = Callable[[Sequence[Operation]], None]
