"""How many equal tasks fit below a limit. Volcano checks one task after the other."""

from __future__ import annotations

from collections.abc import Sequence

from volcano_py.scheduler.model.resource import Resource


def within(held: Resource, demands: Sequence[tuple[str, float]], limit: Resource, count: int) -> int:
    """The largest number of tasks, up to `count`, with which no demanded amount exceeds its limit."""
    for d, amount in demands:
        have, most = held[d], limit[d]
        if have + count * amount <= most:
            continue
        count = min(count, max(int((most - have) // amount), 0))
        while count and have + count * amount > most:  # the division is rounded
            count -= 1
    return count
