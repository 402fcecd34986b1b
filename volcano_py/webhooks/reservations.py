"""Admission of Reservations: when, which nodes, and beside which others. Not in Volcano: /reservations/validate.

Two Reservations may not have the same node at the same time, except that one without owners, such as for maintenance,
may lie over one with owners: no one may use the nodes then. Nodes by label or by number are known when the scheduler
has chosen them; it states what overlaps in the status.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from volcano_py.api.codec import from_manifest
from volcano_py.api.meta import format_time
from volcano_py.api.reservation import Reservation, check_nodes, period_of
from volcano_py.webhooks.lookup import Manifest, about


def validate_reservation(
    found: Manifest, others: Iterable[Manifest], now: float, old: Manifest | None = None
) -> list[str]:
    """Problems of a new or updated Reservation; `now`: seconds since the epoch."""
    if old is not None and old.get("spec") == found.get("spec"):
        return []
    return about("reservation", found, _problems(from_manifest(Reservation, dict(found)), others, now, old is None))


def _problems(found: Reservation, others: Iterable[Manifest], now: float, is_new: bool) -> list[str]:
    try:
        _, end = period_of(found.spec)
        check_nodes(found.spec)
    except ValueError as error:
        return [str(error)]
    if is_new and end <= now:
        return [f"spec: it ended at {format_time(end)}; set a later startTime, duration or endTime"]
    problems = (_overlap(found, other) for other in others)
    return [problem for problem in problems if problem]


def _overlap(found: Reservation, manifest: Manifest) -> str:
    try:
        other = from_manifest(Reservation, dict(manifest))
        start, end = period_of(other.spec)
    except (ValueError, msgspec.ValidationError):
        return ""  # it reserves nothing
    mine = period_of(found.spec)
    if other.metadata.name == found.metadata.name or not (start < mine[1] and mine[0] < end):
        return ""
    if not (found.spec.owners and other.spec.owners):
        return ""
    both = sorted(nodes_of(found) & nodes_of(other))
    if not both:
        return ""
    more = f" and {len(both) - 1} more" if len(both) > 1 else ""
    return (
        f"spec.nodes: node {both[0]}{more} is reserved by Reservation {other.metadata.name} from {format_time(start)} "
        f"to {format_time(end)}; use other nodes or another time"
    )


def nodes_of(found: Reservation) -> set[str]:
    """The nodes that are known: those that it names if it needs all of them, or else those of its status."""
    spec = found.spec
    counts = spec.node_count or spec.resources or spec.node_selector is not None
    return set((found.status.nodes if counts else spec.nodes) or ())
