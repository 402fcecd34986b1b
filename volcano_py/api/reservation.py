"""Reservation (reservation.volcano.sh/v1alpha1): nodes that are kept for some jobs, or for no one, for a time.

Not in Volcano. The names follow Slurm's `scontrol create reservation` (StartTime, EndTime, Duration, Nodes, NodeCnt,
TRES) and Koordinator's Reservation (owners); see ADR 12.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import field

from volcano_py.api.core import ResourceList
from volcano_py.api.duration import parse_duration
from volcano_py.api.meta import ApiObject, ApiType, LabelSelector, parse_time

API_VERSION = "reservation.volcano.sh/v1alpha1"

LONGEST = 366 * 86_400.0
"""Seconds; a longer Reservation is invalid."""

# Phases
PENDING = "Pending"
ACTIVE = "Active"
ENDED = "Ended"
INVALID = "Invalid"


class ReservationOwner(ApiType):
    """Who may use the nodes: pods to which all fields apply that are set."""

    queue: str = ""
    """Jobs of this queue or of a queue below it."""
    namespace: str = ""
    owner: str = ""
    """Jobs of this owner: the label or annotation `volcano.sh/owner` of the PodGroup, or else the namespace."""
    label_selector: LabelSelector | None = None
    """Pods with these labels."""


class ReservationSpec(ApiType):
    """All nodes that are named, or as many of them as `node_count` and `resources` state."""

    start_time: str = ""
    end_time: str | None = None
    duration: str = ""
    """Instead of the end."""
    nodes: list[str] | None = None
    node_selector: LabelSelector | None = None
    node_count: int | None = None
    resources: ResourceList | None = None
    owners: list[ReservationOwner] | None = None
    """Pods to which one of these applies may use the nodes; none: no one may, as for maintenance."""


class ReservationStatus(ApiType):
    phase: str = ""
    start_time: str | None = None
    end_time: str | None = None
    nodes: list[str] | None = None
    node_count: int = 0
    used: dict[str, str] | None = None
    """What the pods that may use the nodes request there."""
    message: str = ""


class Reservation(ApiObject):
    api_version: str = API_VERSION
    kind: str = "Reservation"
    spec: ReservationSpec = field(default_factory=ReservationSpec)
    status: ReservationStatus = field(default_factory=ReservationStatus)


def period_of(spec: ReservationSpec) -> tuple[float, float]:
    """Start and end in seconds since the epoch. Raises ValueError with the field, the value and a remedy."""
    if not spec.start_time:
        raise ValueError("spec.startTime is missing: set a time such as 2026-12-01T08:00:00Z")
    start = _read("spec.startTime", spec.start_time, parse_time)
    if bool(spec.duration) == bool(spec.end_time):
        raise ValueError("spec: set either duration or endTime")
    if spec.end_time:
        end = _read("spec.endTime", spec.end_time, parse_time)
    else:
        end = start + _read("spec.duration", spec.duration, parse_duration)
    if not 0 < end - start <= LONGEST:
        name = "endTime" if spec.end_time else "duration"
        value = spec.end_time or spec.duration
        raise ValueError(f"spec.{name} is {value}: it must end after its start, and after 366 days at most")
    return start, end


def check_nodes(spec: ReservationSpec) -> None:
    """Raises ValueError if it names no node."""
    if not (spec.nodes or spec.node_selector is not None or spec.node_count or spec.resources):
        raise ValueError("spec names no node: set nodes, nodeSelector, nodeCount or resources")
    if spec.node_count is not None and spec.node_count < 1:
        raise ValueError(f"spec.nodeCount is {spec.node_count}, and must be at least 1")


def _read(name: str, text: str, read: Callable[[str], float]) -> float:
    try:
        return read(text)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
