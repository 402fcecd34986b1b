"""What a Reservation states, as numbers: from when until when, which nodes, and who may use them. Not in Volcano.

The phase is a function of this and the time alone: a Reservation that is edited while it is active, or a clock that
jumps, needs no memory.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec import Struct

from volcano_py.api import reservation as api
from volcano_py.api.meta import format_time
from volcano_py.api.reservation import Reservation, ReservationOwner, ReservationSpec, check_nodes, period_of
from volcano_py.api.selector import check, is_empty, matches
from volcano_py.scheduler.framework.jobs.owner import owner_of
from volcano_py.scheduler.model.jobs.job import Job
from volcano_py.scheduler.model.resource import Resource


class ReservedWindow(Struct):
    """One Reservation."""

    name: str
    uid: str
    start: float
    end: float
    """In seconds since the epoch; it is not reserved any more at its end."""
    spec: ReservationSpec
    amounts: Resource
    """As many nodes as have these amounts together; empty: they are not counted."""
    known: list[str]
    """The nodes that its status states."""

    def phase(self, now: float) -> str:
        return api.PENDING if now < self.start else api.ACTIVE if now < self.end else api.ENDED

    def overlaps(self, other: ReservedWindow) -> bool:
        return self.start < other.end and other.start < self.end

    @property
    def counts(self) -> bool:
        """Whether it needs only some of the nodes that it names."""
        return bool(self.spec.node_count or self.amounts.names())

    @property
    def period(self) -> str:
        return f"from {format_time(self.start)} to {format_time(self.end)}"

    def names(self, node: str, labels: Mapping[str, str]) -> bool:
        """Whether a node is one of those that it names."""
        spec = self.spec
        if spec.nodes and node not in spec.nodes:
            return False
        return spec.node_selector is None or matches(spec.node_selector, labels)

    @property
    def labels(self) -> set[str]:
        """The names of the labels by which it selects who may use its nodes."""
        found: set[str] = set()
        for owner in self.spec.owners or ():
            if owner.label_selector is not None:
                found.update(owner.label_selector.match_labels or ())
                found.update(each.key for each in owner.label_selector.match_expressions or ())
        return found

    def permits(self, job: Job, queues: Collection[str], labels: Mapping[str, str]) -> bool:
        """Whether a pod may use the nodes. `queues`: the job's queue and those above it."""
        return any(_is(owner, job, queues, labels) for owner in self.spec.owners or ())


def read_window(found: Reservation) -> ReservedWindow:
    """Raises ValueError with the field, the value and a remedy. Admission states the same; the CRD of a cluster may be
    older, or its rules switched off."""
    spec = found.spec
    start, end = period_of(spec)
    check_nodes(spec)
    try:
        amounts = Resource.parse(spec.resources)
    except ValueError as error:
        raise ValueError(f"spec.resources: {error}") from None
    for place, owner in enumerate(spec.owners or ()):
        if not (owner.queue or owner.namespace or owner.owner or owner.label_selector is not None):
            raise ValueError(f"spec.owners[{place}]: set queue, namespace, owner or labelSelector")
        _selector(f"spec.owners[{place}].labelSelector", owner)
    try:
        check(spec.node_selector)
    except ValueError as error:
        raise ValueError(f"spec.nodeSelector: {error}") from None
    name, uid = found.metadata.name, found.metadata.uid
    return ReservedWindow(name, uid, start, end, spec, amounts, list(found.status.nodes or ()))


def _selector(field: str, owner: ReservationOwner) -> None:
    try:
        check(owner.label_selector)
    except ValueError as error:
        raise ValueError(f"{field}: {error}") from None


def _is(owner: ReservationOwner, job: Job, queues: Collection[str], labels: Mapping[str, str]) -> bool:
    if owner.queue and owner.queue not in queues:
        return False
    if owner.namespace and owner.namespace != job.namespace:
        return False
    if owner.owner and owner.owner != owner_of(job):
        return False
    return owner.label_selector is None or is_empty(owner.label_selector) or matches(owner.label_selector, labels)


def users_of(spec: ReservationSpec) -> str:
    """Who may use the nodes, for messages."""
    found = []
    for owner in spec.owners or ():
        parts = [
            f"{kind} {name}"
            for kind, name in (("queue", owner.queue), ("namespace", owner.namespace), ("owner", owner.owner))
            if name
        ]
        if owner.label_selector is not None:
            parts.append("pods with its labels")
        found.append(" and ".join(parts))
    return " or ".join(found[:3]) + (f" or {len(found) - 3} more" if len(found) > 3 else "") if found else "no one"
