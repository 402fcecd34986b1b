"""Reservation (reservation.volcano.sh/v1alpha1): nodes that are kept for some jobs, or for nobody, for a time.

Not in Volcano. The names follow Slurm's `scontrol create reservation` (StartTime, EndTime, Duration, Nodes, NodeCnt,
TRES) and Koordinator's Reservation (owners); see ADR 12.
"""

from __future__ import annotations

from msgspec import field

from volcano_py.api.core import ResourceList
from volcano_py.api.meta import ApiObject, ApiType, LabelSelector

API_VERSION = "reservation.volcano.sh/v1alpha1"

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
    """Which nodes, when, and for whom. All nodes that are named, or as many of them as `node_count` and `resources`
    state."""

    start_time: str = ""
    end_time: str | None = None
    duration: str = ""
    """Instead of the end."""
    nodes: list[str] | None = None
    node_selector: LabelSelector | None = None
    node_count: int | None = None
    resources: ResourceList | None = None
    owners: list[ReservationOwner] | None = None
    """Pods to which one of these applies may use the nodes; none: nobody may, as for maintenance."""


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
