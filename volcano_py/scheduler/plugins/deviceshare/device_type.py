"""The interface of a type of shared device: demands of pods, cards of nodes, and how cards fit a demand. Volcano: the
interface Devices."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple, Protocol

from volcano_py.api import quantity
from volcano_py.api.core import Node, Pod, ResourceList
from volcano_py.scheduler.framework.search.fit_errors import Reason
from volcano_py.scheduler.model.jobs.task import Task

Annotations = dict[str, str]


class Fit(NamedTuple):
    """Whether cards fit a demand. `code`: 0, or the number of a reason of the device type, from 1."""

    code: int
    score: float = 0.0


class Taken(NamedTuple):
    """The result of booking cards for a pod: annotations for its binding, or an error."""

    annotations: Annotations
    error: str | None = None


class BookedDevices(Protocol):
    """The devices of one type on one node, with the bookings of pods. A clone shares no mutable state."""

    def clone(self) -> BookedDevices: ...

    def state(self) -> Hashable:
        """Everything that `fit` depends on; equal states give equal results."""
        ...

    def fit(self, demand: Any) -> Fit:
        """Whether the cards fit a demand now."""
        ...

    def take(self, demand: Any, task: Task) -> Taken:
        """Book cards for a pod that gets this node. On error no card is booked."""
        ...

    def count(self, task: Task) -> None:
        """Book the cards in the annotations of a pod on the node. Volcano: AddResource."""
        ...

    def uncount(self, task: Task) -> None:
        """Undo `count`. Volcano: SubResource."""
        ...

    def release(self, task: Task) -> None:
        """Undo `take`. Volcano: Release."""
        ...


class DeviceType(Protocol):
    """One configured type of shared device."""

    name: str
    lock: str
    """The annotation that locks a node while a pod is bound; "": the type has no lock."""
    reasons: Sequence[Reason]
    """The reasons why cards reject a demand."""
    scores: bool
    """Whether nodes are scored by `Fit.score`."""
    moved: frozenset[str]
    """Nodes whose devices are announced elsewhere than in the Node object, and have changed there."""

    def demand(self, pod: Pod) -> Hashable | None:
        """The demand of a pod; None: the pod requests no device of this type. Equal for all pods of a class."""
        ...

    def cards(self, node: Node) -> BookedDevices | None:
        """The devices that a node announces, without bookings; None: none of this type."""
        ...

    def locks(self, demand: Any) -> bool:
        """Whether the node is locked for a pod with this demand."""
        ...

    def of_pod(self, demand: Any, task: Task) -> Any:
        """The demand of a class, completed with what differs between its pods, such as labels."""
        ...

    def is_shared(self, demand: Any) -> bool:
        """Whether cards in equal states give equal results: the demand contains no card, group or label."""
        ...

    def times(self, now: float) -> Annotations:
        """The annotations of a binding that contain its time, in seconds since the epoch."""
        ...


def limit(amounts: ResourceList | None, name: str) -> int | None:
    """An amount by resource name in whole units; None: the resource is not listed."""
    return quantity.value(amounts[name]) if amounts and name in amounts else None
