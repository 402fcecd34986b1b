"""What is free of each card of the nodes: exact, where a plugin assigns cards, or as a pool. Not in Volcano.

A plugin that assigns cards (deviceshare) publishes a `CardBook` when a session opens; another plugin's score reads it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.resource import EPS

Floats = NDArray[np.float64]


class CardNeeds(NamedTuple):
    """What a pod takes: `amount` of each of `cards`."""

    cards: int
    amount: float


@dataclass
class CardBook:
    """The cards of one type."""

    needs: Callable[[Task], CardNeeds | None]
    """Of the pods of a class; None: no card."""
    free: Callable[[NDArray[np.intp] | slice], Floats]
    """What is free now on some nodes, by node and card, in the unit of the needs; 0: there is no card. Read-only."""


@dataclass
class PublishedCards:
    """The books of a session (`session.shared`), by the resources with which pods request such cards."""

    of: dict[str, CardBook] = field(default_factory=dict)


class FreeCards(Protocol):
    """The free cards of some nodes. Values are by node."""

    total: Floats
    """What is free."""

    def able(self, amount: float) -> Floats:
        """How many cards have so much."""
        ...

    def too_small(self, amount: float) -> Floats:
        """What is free on cards that have less."""
        ...


class ExactCards:
    """`free`: by node and card."""

    def __init__(self, free: Floats) -> None:
        self.free = free
        self.total: Floats = free.sum(axis=1)

    def able(self, amount: float) -> Floats:
        able: Floats = (self.free >= amount - EPS).sum(axis=1).astype(np.float64)
        return able

    def too_small(self, amount: float) -> Floats:
        small: Floats = np.where(self.free < amount - EPS, self.free, 0.0).sum(axis=1)
        return small

    def without(self, needs: CardNeeds) -> ExactCards:
        """What is left beside a pod, on the nodes where it fits: it takes the fullest cards that have enough."""
        usable = np.where(self.free >= needs.amount - EPS, self.free, np.inf)
        fullest = np.argsort(usable, axis=1, kind="stable")[:, : needs.cards]
        left = self.free.copy()
        taken = np.where(np.isfinite(np.take_along_axis(usable, fullest, axis=1)), needs.amount, 0.0)
        np.put_along_axis(left, fullest, np.take_along_axis(left, fullest, axis=1) - taken, axis=1)
        return ExactCards(left)


class PooledCards:
    """The free amount of each node as whole cards and the rest of one."""

    def __init__(self, free: Floats, card: float) -> None:
        self.total: Floats = np.maximum(free, 0.0)
        self._card = card
        self._rest = self.total % card
        self._whole = self.total - self._rest

    def able(self, amount: float) -> Floats:
        able: Floats = np.rint(self._whole / self._card) + (self._rest >= amount - EPS)
        return able

    def too_small(self, amount: float) -> Floats:
        small: Floats = np.where(self._rest < amount - EPS, self._rest, 0.0)
        return small
