"""Fragmentation gradient descent (FGD, Weng et al., USENIX ATC 2023) in a model that shares no code with the scheduler.

The free share of each card is exact. A pod goes to the node, and to the card of it, where its placement adds the least
to the free GPU that the pods of the trace cannot use, in the mean over all shapes of pods that request GPUs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from volcano_py.simulate.trace.jobs import GPU, TraceJob, TraceNode

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Shape = tuple[int, int, int, int, tuple[str, ...]]
"""cpu, memory, number of cards, thousandths of each, models."""
_WHOLE = 1000


class Scores:
    """Of one shape, by node: what its placement adds to the loss (inf: it does not fit), and the card of a share."""

    def __init__(self, nodes: int) -> None:
        self.added: Floats = np.full(nodes, np.inf)
        self.card: Ints = np.zeros(nodes, dtype=np.int64)
        self.changes = 0
        """How many of the model's changes are in the scores."""


class FgdModel:
    """A cluster that fills. `jobs`: those whose shapes count for the loss."""

    def __init__(self, nodes: Sequence[TraceNode], jobs: Sequence[TraceJob]) -> None:
        self.cpu: Ints = np.array([node.capacity["cpu"] for node in nodes], dtype=np.int64)
        self.memory: Ints = np.array([node.capacity["memory"] for node in nodes], dtype=np.int64)
        counts = [node.capacity.get(GPU, 0) // _WHOLE for node in nodes]
        self.cards: Ints = np.zeros((len(nodes), max(counts)), dtype=np.int64)
        """What is free of each, in thousandths."""
        for row, count in enumerate(counts):
            self.cards[row, :count] = _WHOLE
        self.total = int(self.cards.sum())
        self._models = [node.model for node in nodes]
        found = Counter(shape_of(job) for job in jobs if job.cards)
        self._shapes = list(found)
        self._often: Floats = np.array([found[shape] for shape in self._shapes]) / sum(found.values())
        self._needs: Ints = np.array([shape[:4] for shape in self._shapes], dtype=np.int64).T
        self._accepted = np.array([[_accepts(shape, model) for shape in self._shapes] for model in self._models])
        self._scores: dict[Shape, Scores] = {}
        self._changed: list[int] = []
        """The nodes on which pods were placed, in order."""

    @property
    def allocated(self) -> float:
        """The share of the GPUs."""
        return 1.0 - float(self.cards.sum()) / self.total

    def place(self, job: TraceJob) -> bool:
        """Place a pod; returns whether it fits."""
        shape = shape_of(job)
        cpu, memory, count, share, _ = shape
        if (scores := self._scores.get(shape)) is None:
            scores = self._scores[shape] = Scores(len(self.cpu))
            self._update(shape, scores, np.arange(len(self.cpu)))
        elif scores.changes < len(self._changed):
            self._update(shape, scores, np.unique(self._changed[scores.changes :]))
        scores.changes = len(self._changed)
        node = int(np.argmin(scores.added))
        if scores.added[node] == np.inf:
            return False
        self.cpu[node] -= cpu
        self.memory[node] -= memory
        if count == 1 and share < _WHOLE:
            self.cards[node, scores.card[node]] -= share
        elif count:
            self.cards[node] = _without(self.cards[node], count, share)
        self._changed.append(node)
        return True

    def _update(self, shape: Shape, scores: Scores, nodes: Ints) -> None:
        """Compute the scores of a shape again on nodes that have changed."""
        cpu, memory, count, share, _ = shape
        scores.added[nodes] = np.inf
        fits = (self.cpu[nodes] >= cpu) & (self.memory[nodes] >= memory)
        fits &= np.array([_accepts(shape, self._models[node]) for node in nodes])
        if count:
            fits &= (self.cards[nodes] >= share).sum(axis=1) >= count
        here = nodes[fits]
        if not len(here):
            return
        before = self._loss(here, self.cpu[here], self.memory[here], self.cards[here])
        left = self.cpu[here] - cpu, self.memory[here] - memory
        if count == 1 and share < _WHOLE:
            for card in range(self.cards.shape[1]):
                able = np.flatnonzero(self.cards[here, card] >= share)
                if not len(able):
                    continue
                cards = self.cards[here[able]]
                cards[:, card] -= share
                added = self._loss(here[able], left[0][able], left[1][able], cards) - before[able]
                better = added < scores.added[here[able]]
                scores.added[here[able[better]]] = added[better]
                scores.card[here[able[better]]] = card
            return
        cards = np.array([_without(self.cards[node], count, share) for node in here]) if count else self.cards[here]
        scores.added[here] = self._loss(here, *left, cards) - before

    def _loss(self, nodes: Ints, cpu: Ints, memory: Ints, cards: Ints) -> Floats:
        """The free GPU of nodes that the shapes cannot use, as the mean."""
        cpu_of, memory_of, count, share = self._needs
        able = cards[:, None, :] >= share[None, :, None]
        fits = (cpu[:, None] >= cpu_of) & (memory[:, None] >= memory_of) & (able.sum(axis=2) >= count)
        fits &= self._accepted[nodes]
        too_small = np.where(able, 0, cards[:, None, :]).sum(axis=2)
        loss: Floats = np.where(fits, too_small, cards.sum(axis=1)[:, None]) @ self._often
        return loss


def shape_of(job: TraceJob) -> Shape:
    return job.requests["cpu"], job.requests["memory"], job.cards, job.share, job.models


def _accepts(shape: Shape, model: str) -> bool:
    return not shape[4] or model in shape[4]


def _without(cards: Ints, count: int, share: int) -> Ints:
    """The cards of a node without those of a pod: of those that have enough, the fullest."""
    left = cards.copy()
    able = [card for card in np.argsort(left, kind="stable") if left[card] >= share]
    left[able[:count]] -= share
    return left
