"""The rule of the order: usage, and what is held for a while, by weight. Not in Volcano.

Queues are compared below their parent, by what their subtree is charged; owners within their queue. The plugin and
`vcctl fairshare` use the same functions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from volcano_py.scheduler.model.queue_parents import path_of
from volcano_py.scheduler.plugins.fairshare.usage import Owner

_DIGITS = 6
"""Decimal places: smaller differences of usage are none, and the next order decides."""


def charged(used: Mapping[Owner, float], held: Mapping[Owner, float], ahead: float) -> dict[Owner, float]:
    """What each owner has used, with what it holds for `ahead` seconds."""
    return {owner: used.get(owner, 0.0) + held.get(owner, 0.0) * ahead for owner in sorted({*used, *held})}


def of_subtrees(owners: Mapping[Owner, float], parents: Mapping[str, str]) -> defaultdict[str, float]:
    """The sums of amounts by queue, each with the queues below it."""
    found: defaultdict[str, float] = defaultdict(float)
    for owner, amount in owners.items():
        for queue in path_of(owner.queue, parents):
            found[queue] += amount
    return found


def level(amount: float, weight: float) -> float:
    """What is compared: the lower one comes first."""
    return round(amount / weight, _DIGITS)


def queue_weight(stated: int | None) -> int:
    """The weight of a queue; at least 1, as for the shares of proportion."""
    return max(stated or 1, 1)
