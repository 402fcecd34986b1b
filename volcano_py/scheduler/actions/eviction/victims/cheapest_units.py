"""The cheapest units whose eviction makes a gang fit, by trying sets of units in the order of their price. Not in
Volcano."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush

from volcano_py.scheduler.actions.eviction.victims.units import Unit
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.statement import Statement

MOST_SETS = 1_000
"""Sets of units that are tried for one gang, and at most this number of them wait."""
MOST_SETS_OF_CYCLE = 4_000
Cost = tuple[float, int]
"""The price, and the number of pods."""


class _Tried:
    """The number of sets that were tried in this cycle."""

    def __init__(self) -> None:
        self.sets = 0


def cheapest(
    session: Session, units: Callable[[], list[Unit]], price: Callable[[Unit], float | None], fits: Callable[[], bool]
) -> tuple[float, list[Unit]] | None:
    """The price of the cheapest set, and its units in the order of their eviction; None: no set was found.

    The session is unchanged. `units`: those of the session as it is. `price`: see `Loan`; it depends on the evictions
    before. `fits`: whether the gang fits the session.
    """
    tried = session.shared(_Tried, _Tried)
    waiting: list[tuple[Cost, int, list[Unit]]] = [((0.0, 0), 0, [])]
    known: set[frozenset[int]] = set()
    number = 0
    while waiting and number < MOST_SETS and tried.sets < MOST_SETS_OF_CYCLE:
        (below, count), _, chosen = heappop(waiting)
        number += 1
        tried.sets += 1
        statement = Statement(session)
        for unit in chosen:
            for task in unit.tasks:
                statement.evict(task, "reclaim")
        if chosen and fits():
            statement.discard()
            return below, chosen
        for unit in units():
            gone = frozenset(t.slot for u in (*chosen, unit) for t in u.tasks)
            if gone in known:
                continue
            cost = price(unit)
            if cost is not None:
                known.add(gone)
                heappush(waiting, ((below + cost, count + len(unit.tasks)), len(known), [*chosen, unit]))
        statement.discard()
    return None
