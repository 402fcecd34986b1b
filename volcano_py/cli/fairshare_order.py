"""The order of queues and owners by their usage, from the stored history and the Queues. Not in Volcano.

The rule is that of the plugin (`plugins/fairshare/levels.py`), without what a session is about to place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any

from msgspec import Struct

from volcano_py.api.scheduling import ROOT_QUEUE
from volcano_py.scheduler.model.queue_parents import usable_parents
from volcano_py.scheduler.plugins.fairshare.levels import charged, level, of_subtrees, queue_weight
from volcano_py.scheduler.plugins.fairshare.usage import Owner, UsageDocument

Manifest = Mapping[str, Any]


class Line(Struct, kw_only=True):
    """A queue, or an owner within it."""

    queue: str
    owner: str = ""
    depth: int
    order: int = 0
    """Its place among its siblings, from 1: who comes first."""
    weight: float
    share: float = 0.0
    """The part of its weight in those of its siblings."""
    used: float
    """Seconds of the whole cluster, decayed."""
    of_siblings: float = 0.0
    """The part of its usage in that of its siblings."""
    held: float
    """The share of the cluster that it holds now."""
    level: float = 0.0


def lines(document: UsageDocument, queues: Iterable[Manifest]) -> list[Line]:
    """All queues and owners, the first to be served first, owners below their queue."""
    specs = {queue["metadata"]["name"]: queue.get("spec") or {} for queue in queues}
    parents, _ = usable_parents({name: spec.get("parent") or "" for name, spec in specs.items()})
    owners = {Owner(each.queue, each.owner): each for each in document.owners if each.queue in specs}
    used = {owner: each.used for owner, each in owners.items()}
    held = {owner: each.held for owner, each in owners.items()}
    amounts = charged(used, held, document.ahead)
    of_used, of_held, of_amounts = (of_subtrees(each, parents) for each in (used, held, amounts))
    found: list[Line] = []

    def siblings(rows: list[Line]) -> list[Line]:
        weight, usage = sum(line.weight for line in rows), sum(line.used for line in rows)
        rows.sort(key=lambda line: (line.level, line.queue, line.owner))
        for order, line in enumerate(rows, 1):
            line.order, line.share = order, line.weight / weight
            line.of_siblings = line.used / usage if usage else 0.0
        return rows

    def add(parent: str, depth: int) -> None:
        rows = []
        for name in (name for name, above in parents.items() if above == parent):
            weight = float(queue_weight(specs[name].get("weight")))
            each = level(of_amounts[name], weight)
            rows.append(
                Line(queue=name, depth=depth, weight=weight, used=of_used[name], held=of_held[name], level=each)
            )
        for line in siblings(rows):
            found.append(line)
            found.extend(siblings([of_owner(owner, depth + 1) for owner in owners if owner.queue == line.queue]))
            add(line.queue, depth + 1)

    def of_owner(owner: Owner, depth: int) -> Line:
        each = owners[owner]
        weight = each.weight if isfinite(each.weight) and each.weight > 0 else 1.0  # of a document that was edited
        found = Line(queue=owner.queue, owner=owner.name, depth=depth, weight=weight, used=each.used, held=each.held)
        found.level = level(amounts[owner], weight)
        return found

    add(ROOT_QUEUE, 0)
    return found
