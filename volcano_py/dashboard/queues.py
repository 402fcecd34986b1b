"""The page of queues as data: the tree, with what each queue holds against its guarantee, share and limit.

The tree is that of `vcctl queue tree`; bars of a resource share one scale, that of the cluster.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any, NamedTuple

from volcano_py.cli import queue_table, queue_tree
from volcano_py.cli.queue_tree import Amounts, Branch, amounts
from volcano_py.cli.queue_tree_table import deserved, scale_of, text
from volcano_py.cli.top_facts import resources_of
from volcano_py.webhooks.lookup import parent_of

Manifest = dict[str, Any]
_ZERO = Fraction(0)
_WAITING = ("Inqueue", "Pending")


class Part(NamedTuple):
    """An amount: as text, and as part of the bar's scale, from 0 to 1."""

    text: str
    share: float


class Bar(NamedTuple):
    """One resource of a queue; None where the queue has no such amount. `by_weight`: deserved is computed, not set."""

    resource: str
    held: Part
    inqueue: Part
    deserved: Part | None
    by_weight: bool
    guarantee: Part | None
    limit: Part | None
    over: bool
    """It holds more than it deserves."""


class QueueRow(NamedTuple):
    """A queue. `depth`: 0 for root."""

    name: str
    depth: int
    parent: str
    state: str
    weight: int
    priority: int
    reclaimable: bool
    running: int
    waiting: int
    bars: tuple[Bar, ...]


class QueuePage(NamedTuple):
    """All queues, parents before their children; `total` is what the nodes have, by resource."""

    rows: tuple[QueueRow, ...]
    total: dict[str, str]
    problems: tuple[str, ...]


def queue_page(queues: Iterable[Manifest], groups: list[Manifest], nodes: Iterable[Manifest]) -> QueuePage:
    """The page of some queues."""
    queues = list(queues)
    total = total_of(nodes)
    trees = queue_tree.grow(queues, groups, total, queue_table.count(groups, queues))
    shown = resources_of(total)
    scale = {r: scale_of(trees, r, total) for r in shown}
    rows = tuple(_row(b, depth, shown, scale) for b, depth in _walk(trees, 0))
    known = {row.name for row in rows}
    problems = tuple(
        f"Queue {row.name}: its parent {row.parent} does not exist; create it, or change spec.parent."
        for row in rows
        if row.parent and row.parent not in known
    )
    return QueuePage(rows, {r: text(total.get(r, _ZERO), r) for r in shown}, problems)


def total_of(nodes: Iterable[Manifest]) -> Amounts:
    """What all nodes have."""
    total: Amounts = {}
    for node in nodes:
        queue_tree.add(total, amounts(node["status"]["allocatable"]))
    return total


def _walk(branches: list[Branch], depth: int) -> Iterable[tuple[Branch, int]]:
    for b in branches:
        yield b, depth
        yield from _walk(b.children, depth + 1)


def _row(b: Branch, depth: int, shown: list[str], scale: Amounts) -> QueueRow:
    spec, status = b.queue["spec"], b.queue["status"]
    return QueueRow(
        b.name,
        depth,
        parent_of(b.queue),
        status.get("state") or "not opened yet",
        int(spec.get("weight") or 1),
        int(spec.get("priority") or 0),
        spec.get("reclaimable") is not False,
        b.groups["Running"],
        sum(b.groups[phase] for phase in _WAITING),
        tuple(_bar(b, r, scale[r]) for r in shown),
    )


def _bar(b: Branch, r: str, scale: Fraction) -> Bar:
    spec = b.queue["spec"]
    held, part = b.allocated.get(r, _ZERO), deserved(b, r)

    def measured(amount: Fraction | None) -> Part | None:
        if amount is None:
            return None
        return Part(text(amount, r), min(1.0, float(amount / scale)) if scale else 0.0)

    return Bar(
        r,
        measured(held) or Part("0", 0.0),
        measured(b.inqueue.get(r, _ZERO)) or Part("0", 0.0),
        measured(part),
        r not in b.deserved,
        measured(amounts((spec.get("guarantee") or {}).get("resource")).get(r)),
        measured(amounts(spec.get("capability")).get(r)),
        part is not None and held > part,
    )
