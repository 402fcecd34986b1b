"""The order of queues and owners by their usage, from the stored history and the Queues. Not in Volcano.

The rule is that of the plugin fairshare, without what a session is about to place: usage, and what is held for `ahead`,
divided by the weight; queues are compared below their parent, owners within their queue.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from volcano_py.scheduler.plugins.fairshare.usage import UsageDocument

Manifest = Mapping[str, Any]
ROOT = "root"
_DIGITS = 6


class Line(Struct, kw_only=True):
    """A queue, or an owner within it."""

    queue: str
    owner: str = ""
    depth: int
    order: int
    """Its place among its siblings, from 1: who comes first."""
    weight: float
    share: float
    """The part of its weight in those of its siblings."""
    used: float
    """Seconds of the whole cluster, decayed."""
    of_siblings: float
    """The part of its usage in that of its siblings."""
    held: float
    """The share of the cluster that it holds now."""
    level: float


def lines(document: UsageDocument, queues: Iterable[Manifest]) -> list[Line]:
    """All queues and owners, the first to be served first, owners below their queue."""
    weights, children = dict[str, float](), defaultdict[str, list[str]](list)
    for queue in queues:
        name, spec = queue["metadata"]["name"], queue.get("spec") or {}
        weights[name] = float(max(spec.get("weight") or 1, 1))
        if name != ROOT:
            children[spec.get("parent") or ROOT].append(name)
    owners = defaultdict[str, list[tuple[str, float, float, float]]](list)
    for each in document.owners:
        owners[each.queue].append((each.owner, each.weight, each.used, each.held))
    found: list[Line] = []

    def sums(queue: str, path: tuple[str, ...] = ()) -> tuple[float, float]:
        """What a queue and its children have used and hold."""
        if queue in path:
            return 0.0, 0.0
        parts = [(used, held) for _, _, used, held in owners[queue]]
        parts += [sums(child, (*path, queue)) for child in children[queue]]
        return sum(used for used, _ in parts), sum(held for _, held in parts)

    def siblings(rows: list[tuple[str, float, float, float]], queue: str, depth: int) -> list[Line]:
        weight, usage = sum(row[1] for row in rows), sum(row[2] for row in rows)
        made = [
            Line(
                queue=queue or name,
                owner=name if queue else "",
                depth=depth,
                order=0,
                weight=own,
                share=own / weight,
                used=used,
                of_siblings=used / usage if usage else 0.0,
                held=held,
                level=round((used + held * document.ahead) / own, _DIGITS),
            )
            for name, own, used, held in rows
        ]
        made.sort(key=lambda line: (line.level, line.queue, line.owner))
        for order, line in enumerate(made, 1):
            line.order = order
        return made

    def grow(parent: str, depth: int, seen: frozenset[str]) -> None:
        rows = [(name, weights[name], *sums(name)) for name in sorted(children[parent]) if name not in seen]
        for line in siblings(rows, "", depth):
            found.append(line)
            found.extend(siblings(owners[line.queue], line.queue, depth + 1))
            grow(line.queue, depth + 1, seen | {line.queue})

    grow(ROOT, 0, frozenset({ROOT}))
    return found
