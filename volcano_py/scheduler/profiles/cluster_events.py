"""What the caller reports to the scheduler, as data: the counterpart of `decisions`. Kubernetes: eventhandlers.go.

`PodScheduler.handle` takes each of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from volcano_py.api.core import Node
from volcano_py.api.gang import CompositePodGroup, PodGroup
from volcano_py.scheduler.profiles.objects import Manifest
from volcano_py.scheduler.profiles.plugin_api.calls import Answer
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo

# ---- the cluster has changed ------------------------------------------------------------------------------------


class NodeChanged(NamedTuple):
    """A node was created (`old` is None), has changed, or was deleted (`new` is None).

    A cluster with a model of its own (see `ProfileCluster`) has the old state, and ignores this one."""

    old: Node | None
    new: Node | None


class NodeReleased(NamedTuple):
    """A node is no longer held: pods for which it was rejected are tried again."""

    node: Node


class PodChanged(NamedTuple):
    """A pod was created, has changed (it may have been bound), or was deleted."""

    old: PodInfo | None
    new: PodInfo | None


class PlaceFreed(NamedTuple):
    """A pod of the session was assumed on a node and is not bound there: its capacity is released."""

    pod: PodInfo
    node: str


class GroupChanged(NamedTuple):
    """A PodGroup was created, has changed, or was deleted (`new` is None)."""

    key: str
    new: PodGroup | None


class CompositeChanged(NamedTuple):
    """A CompositePodGroup was created, has changed, or was deleted (`new` is None)."""

    key: str
    new: CompositePodGroup | None


class ObjectChanged(NamedTuple):
    """An object of a kind in `PodScheduler.reads` was created, has changed, or was deleted."""

    manifest: Manifest
    deleted: bool = False


class ClaimObjectChanged(NamedTuple):
    """An object of volumes or devices (`model.claims.pod_claims.KINDS`) was created (`old` is None), has changed, or
    was deleted (`new` is None). For a cluster with a model of its own as with NodeChanged."""

    kind: str
    old: Any
    new: Any


ClusterChange = (
    NodeChanged
    | NodeReleased
    | PodChanged
    | PlaceFreed
    | GroupChanged
    | CompositeChanged
    | ObjectChanged
    | ClaimObjectChanged
)

# ---- what has become of decisions -------------------------------------------------------------------------------


class BindEnded(NamedTuple):
    """A binding was written (`error` is empty), or failed. `uid`: a result for a pod with another UID is ignored."""

    key: str
    error: str = ""
    uid: str = ""


class BoundBySession(NamedTuple):
    """A pod of a profile that a session has placed is bound: plugins are called at PostBind."""

    pod: PodInfo
    node: str


class CallAnswered(NamedTuple):
    """The outcome of an `Ask`: the pod continues."""

    number: str
    answer: Answer


class PermitAllowed(NamedTuple):
    """On behalf of a plugin, a pod that waits at Permit continues."""

    key: str
    plugin: str


class PermitRejected(NamedTuple):
    """On behalf of a plugin, a pod that waits at Permit is rejected."""

    key: str
    plugin: str
    message: str


Outcome = BindEnded | BoundBySession | CallAnswered | PermitAllowed | PermitRejected
Event = ClusterChange | Outcome
