"""The cards of GPUs for other plugins: what is free of each, and what pods take. Not in Volcano.

Memory is the measure; the exclusive use of cores, and a full number of shares, leave nothing free of a card. The cards
of terminating pods count as free. Which cards a pod accepts by type, and MIG instances, are not part of it.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from volcano_py.api import names
from volcano_py.scheduler.framework.search.free_cards import CardBook, CardNeeds, PublishedCards
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.plugins.deviceshare.gpu_share import GpuCards, GpuShare, GpuShareDemand
from volcano_py.scheduler.plugins.deviceshare.ledger import Ledger
from volcano_py.scheduler.plugins.deviceshare.vgpu import Vgpu, VgpuCards
from volcano_py.scheduler.plugins.deviceshare.vgpu_demand import NO_PERCENTAGE, VgpuDemand

Floats = NDArray[np.float64]


def publish(session: Session, ledger: Ledger) -> None:
    """Publish the cards of a ledger, if they are GPUs."""
    of = ledger.type
    resources: tuple[str, ...]
    if isinstance(of, Vgpu):
        resources = (of.config.count_name, of.config.memory_name)
    elif isinstance(of, GpuShare):
        resources = (names.GPU_NUMBER if of.by_number else names.GPU_MEMORY,)
    else:
        return
    cards = _LedgerCards(ledger, len(session.table))
    book = CardBook(cards.needs, cards.free)
    session.shared(PublishedCards, PublishedCards).of.update(dict.fromkeys(filter(None, resources), book))


class _LedgerCards:
    """Follows the cards of a ledger once they are read."""

    def __init__(self, ledger: Ledger, nodes: int) -> None:
        self._ledger = ledger
        self._nodes = nodes

    def free(self, nodes: NDArray[np.intp] | slice) -> Floats:
        free, moved = self._free, self._ledger.moved
        while moved:
            node = moved.pop()
            found = self._of(node)
            free[node, : len(found)] = found
        return free[nodes]

    @cached_property
    def _free(self) -> Floats:
        of = {node: self._of(node) for node in self._ledger.columns()}
        free: Floats = np.zeros((self._nodes, max(map(len, of.values()), default=0)))
        for node, found in of.items():
            free[node, : len(found)] = found
        return free

    @cached_property
    def _smallest(self) -> int:
        """MiB of the smallest card."""
        all_cards = (self._ledger.cards(node) for node in self._ledger.columns())
        memories = (c.announced.memory for cards in all_cards if isinstance(cards, VgpuCards) for c in cards.cards)
        return min(memories, default=1)

    def _of(self, node: int) -> list[int]:
        cards = self._ledger.cards(node)
        return cards.free_memory() if isinstance(cards, VgpuCards | GpuCards) else []

    def needs(self, task: Task) -> CardNeeds | None:
        """Of several containers, the largest amount counts for the cards of all."""
        demand = self._ledger.demand(task)
        if isinstance(demand, GpuShareDemand):
            return CardNeeds(demand.number, 1.0) if demand.number else CardNeeds(1, float(demand.memory))
        if not isinstance(demand, VgpuDemand):
            return None
        requests = [request for request in demand.requests if request.number]
        if not requests:
            return None
        # a percentage counts of the smallest card, so that no card is too small for it
        memory = max(r.memory if r.percentage == NO_PERCENTAGE else r.memory_of(self._smallest) for r in requests)
        return CardNeeds(sum(r.number for r in requests), float(memory))
