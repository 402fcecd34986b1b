"""Cluster events that can make a rejected pod schedulable. Kubernetes: ClusterEvent and queueing hints."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterator, Sequence, Set
from enum import Enum, Flag, auto
from typing import TYPE_CHECKING, Any, NamedTuple

from volcano_py.api.core import Node

if TYPE_CHECKING:
    from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo


log = logging.getLogger(__name__)


class Kind(Enum):
    """The kind of object of an event."""

    NODE = "Node"
    ASSIGNED_POD = "AssignedPod"
    UNSCHEDULED_POD = "UnscheduledPod"
    POD_GROUP = "PodGroup"
    OBJECT = "Object"
    """An object of a kind that a plugin reads."""
    VOLUME_CLAIM = "PersistentVolumeClaim"
    VOLUME = "PersistentVolume"
    STORAGE_CLASS = "StorageClass"
    CSI_NODE = "CSINode"
    CSI_DRIVER = "CSIDriver"
    STORAGE_CAPACITY = "CSIStorageCapacity"
    ATTACHMENT = "VolumeAttachment"
    RESOURCE_CLAIM = "ResourceClaim"
    RESOURCE_SLICE = "ResourceSlice"
    DEVICE_CLASS = "DeviceClass"
    DEVICE_TAINT = "DeviceTaintRule"


class ActionType(Flag):
    """The kind of change."""

    ADD = auto()
    DELETE = auto()
    ALLOCATABLE = auto()
    NODE_LABEL = auto()
    TAINT = auto()
    """Taints changed, or the node was uncordoned."""
    ANNOTATION = auto()
    POD_LABEL = auto()
    SCALE_DOWN = auto()
    TOLERATION = auto()
    GATES_GONE = auto()
    CLAIMS_MADE = auto()
    """ResourceClaims were created for the pod."""
    OTHER = auto()


PODS = frozenset((Kind.ASSIGNED_POD, Kind.UNSCHEDULED_POD))
NODES = frozenset((Kind.NODE,))
GROUPS = frozenset((Kind.POD_GROUP,))
OBJECTS = frozenset((Kind.OBJECT,))
PLAIN = PODS | NODES | GROUPS | OBJECTS
"""All but the objects of volumes and devices."""

Hint = Callable[["PodInfo", Any, Any], bool]
"""(the waiting pod, the object before, the object after) → whether to try the pod again."""


class ClusterEvent(NamedTuple):
    """`old` and `new` are a Node, a PodInfo, a PodGroup, an object of volumes or devices, or a manifest; None if the
    object did not exist."""

    kind: Kind
    action: ActionType
    old: Any = None
    new: Any = None


class Interest(NamedTuple):
    """Events after which a pod that the plugin rejected is tried again; without a hint: always."""

    kinds: frozenset[Kind]
    action: ActionType
    hint: Hint | None = None

    def matches(self, event: ClusterEvent) -> bool:
        """Whether the event is one of the declared events."""
        return event.kind in self.kinds and bool(self.action & event.action)

    def helps(self, pod: PodInfo, event: ClusterEvent) -> bool:
        """Whether the event may make the pod schedulable. If a hint fails, the result is True."""
        if not self.matches(event):
            return False
        if self.hint is None:
            return True
        try:
            return self.hint(pod, event.old, event.new)
        except Exception:
            log.exception("queueing hint %r", self.hint)
            return True


def _is_another(pod: PodInfo, old: Any, new: Any) -> bool:
    """False for the creation of the pod itself: it was tried then."""
    return old is not None or new is not pod


EVERY_EVENT = Interest(frozenset(Kind), ~ActionType(0), _is_another)
"""Kubernetes: a plugin without EventsToRegister is registered for all events."""
CAPACITY_EVENTS = (
    Interest(PODS, ActionType.DELETE | ActionType.SCALE_DOWN | ActionType.POD_LABEL | ActionType.TOLERATION),
    Interest(
        NODES,
        ActionType.ADD | ActionType.ALLOCATABLE | ActionType.NODE_LABEL | ActionType.TAINT | ActionType.ANNOTATION,
    ),
)
"""All events that release or add capacity, for a program outside that may reject a pod for any reason."""


def check_interests(found: object) -> None:
    """Raises ValueError if a plugin has declared something else than a sequence of Interest that can match events."""
    if isinstance(found, Interest) or not isinstance(found, Sequence) or isinstance(found, str):
        raise ValueError(f"interests returns {_shown(found)}; return a tuple of Interest")
    for number, interest in enumerate(found):
        where = f"interests[{number}]"
        if not isinstance(interest, Interest):
            raise ValueError(f"{where} is {_shown(interest)}; use Interest(kinds, action, hint)")
        kinds: object = interest.kinds
        if not isinstance(kinds, Set) or not kinds or not all(isinstance(k, Kind) for k in kinds):
            raise ValueError(f"{where}.kinds is {_shown(kinds)}; use a set of Kind, such as PODS or NODES")
        action: object = interest.action
        if not isinstance(action, ActionType) or not action:
            raise ValueError(f"{where}.action is {_shown(action)}; use Action, such as Action.ADD | Action.DELETE")
        hint: object = interest.hint
        if hint is not None and not callable(hint):
            raise ValueError(f"{where}.hint is {_shown(hint)}; use a function of pod, old and new, or None")
        if hint is not None and not _takes_three(hint):
            raise ValueError(f"{where}.hint {_shown(hint)} cannot be called with pod, old and new")


def _takes_three(hint: Callable[..., object]) -> bool:
    try:
        inspect.signature(hint).bind(None, None, None)
    except TypeError:
        return False
    except ValueError:  # a built-in without a signature
        return True
    return True


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def node_events(old: Node, new: Node) -> Iterator[ClusterEvent]:
    """The changes of a node that matter for scheduling."""
    if (old.status.allocatable or {}) != (new.status.allocatable or {}):
        yield ClusterEvent(Kind.NODE, ActionType.ALLOCATABLE, old, new)
    if (old.metadata.labels or {}) != (new.metadata.labels or {}):
        yield ClusterEvent(Kind.NODE, ActionType.NODE_LABEL, old, new)
    uncordoned = old.spec.unschedulable and not new.spec.unschedulable
    if (old.spec.taints or []) != (new.spec.taints or []) or uncordoned:
        yield ClusterEvent(Kind.NODE, ActionType.TAINT, old, new)
    if (old.metadata.annotations or {}) != (new.metadata.annotations or {}):
        yield ClusterEvent(Kind.NODE, ActionType.ANNOTATION, old, new)


def pod_events(kind: Kind, old: PodInfo, new: PodInfo) -> list[ClusterEvent]:
    """The changes of a pod; at least one event."""
    found = []
    if old.labels != new.labels:
        found.append(ClusterEvent(kind, ActionType.POD_LABEL, old, new))
    if any(amount > new.requests.get(name, 0) for name, amount in old.requests.items()):
        found.append(ClusterEvent(kind, ActionType.SCALE_DOWN, old, new))
    if old.tolerations != new.tolerations:
        found.append(ClusterEvent(kind, ActionType.TOLERATION, old, new))
    if old.gates and not new.gates:
        found.append(ClusterEvent(kind, ActionType.GATES_GONE, old, new))
    if old.pod.status.resource_claim_statuses != new.pod.status.resource_claim_statuses:
        found.append(ClusterEvent(kind, ActionType.CLAIMS_MADE, old, new))
    return found or [ClusterEvent(kind, ActionType.OTHER, old, new)]
