"""Shortages: the classes of pods for which every node lacks capacity, kept between sessions. Not in Volcano, which
filters all nodes again for every pod and in every cycle.

While each node lacks some resource for a class, no rule can make a node accept its pods, and the lacking resources are
the only reasons. This is checked again only for the nodes whose numbers have changed, for all classes at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.framework.search.fit_errors import FitErrors, insufficient
from volcano_py.scheduler.framework.search.node_rules import Floats, Indices
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.column_log import ColumnLog
from volcano_py.scheduler.model.jobs.spec_class import SpecClass
from volcano_py.scheduler.model.nodes.node_table import NodeNumbers, NodeTable, arrays_kept
from volcano_py.scheduler.model.resource import EPS

ALL_NODES = slice(None)
MOST = 1000
"""Limit of the number of classes: when it is reached, all are forgotten, also those that no longer have pods."""
_MOST_COMPARED = 4_000_000
"""Limit of the amounts that are compared at once: if more have changed, all classes are forgotten."""


class Shortages:
    """State between sessions. Resources are in the order cpu, memory, pods, others by name."""

    def __init__(self) -> None:
        self._log: ColumnLog | None = None
        """The log of the session that the state follows."""
        self._read = 0
        """The position in that log up to which the state follows it."""
        self._model_read = -1
        """The position in the log of the model's nodes."""
        self._nodes = (-1, -1)
        self._forget((-1, -1), [], 0)

    def _forget(self, nodes: tuple[int, int], rows: list[int], count: int) -> None:
        self._nodes = nodes
        self._rows = np.array(rows, dtype=np.intp)
        self._at: dict[int, int] = {}
        """The index of each class in the arrays, by its ID."""
        self._needs: Floats = np.empty((8, len(rows)))
        """The request of each class; −∞ for resources that need not fit: [classes x resources]."""
        self._first: NDArray[np.int8] = np.empty((8, count), dtype=np.int8)
        """The first resource that each node lacks: [classes x nodes]."""
        self._errors: list[FitErrors] = []

    def of(self, spec_class: SpecClass, cluster: Cluster, numbers: NodeNumbers) -> FitErrors | None:
        """Why no node has capacity for a class; None: it is not known whether one has."""
        if spec_class.id not in self._at:
            return None
        self._follow(cluster, numbers)
        at = self._at.get(spec_class.id)
        return None if at is None else self._errors[at]

    def add(self, spec_class: SpecClass, cluster: Cluster, numbers: NodeNumbers) -> None:
        """Add a class if every node lacks capacity for it."""
        self._follow(cluster, numbers)
        table, at = cluster.nodes, len(self._at)
        if spec_class.id in self._at or len(self._rows) > 127:
            return
        if at >= min(MOST, arrays_kept(len(table))):
            self._forget(self._nodes, self._rows.tolist(), len(table))
            at = 0
        need = np.full(len(table.rows), -np.inf)
        checked = spec_class.checked_rows(table)
        need[checked] = spec_class.vector(table)[checked]
        lacks = need[self._rows, None] - _soon(numbers, self._rows, ALL_NODES) >= EPS
        if not lacks.any(axis=0).all():
            return
        if at == len(self._needs):
            self._needs = np.concatenate((self._needs, np.empty_like(self._needs)))
            self._first = np.concatenate((self._first, np.empty_like(self._first)))
        self._at[spec_class.id] = at
        self._needs[at], self._first[at] = need[self._rows], lacks.argmax(axis=0)
        self._errors.append(_errors(self._first[at], self._rows, table))

    def _follow(self, cluster: Cluster, numbers: NodeNumbers) -> None:
        """Compare the nodes that have changed since the last call."""
        table = cluster.nodes
        nodes = table.names_generation, len(table.rows)
        if nodes != self._nodes:
            self._forget(nodes, _in_order(table), len(table))
        elif numbers.log is self._log and numbers.log.position == self._read:
            return
        elif self._at:
            changed = self._changed(cluster, numbers)
            if changed is None or len(changed) * self._needs.size > _MOST_COMPARED:
                self._forget(nodes, _in_order(table), len(table))
            elif len(changed):
                self._compare(table, numbers, changed)
        self._log, self._read = numbers.log, numbers.log.position
        self._model_read = cluster.node_changes.position

    def _changed(self, cluster: Cluster, numbers: NodeNumbers) -> Indices | None:
        """The nodes whose numbers may differ from those at the last call; None: unknown."""
        if numbers.log is self._log:
            return np.array(numbers.log.since(self._read), dtype=np.intp)
        names = cluster.node_changes.since(self._model_read)
        if names is None or self._log is None:
            return None
        columns = {cluster.nodes.index[name] for name in names if name in cluster.nodes.index}
        # A new session starts with the numbers of the model, whatever the last one had placed.
        for log in (self._log, numbers.log):
            columns.update(log.since(0))
        return np.array(sorted(columns), dtype=np.intp)

    def _compare(self, table: NodeTable, numbers: NodeNumbers, changed: Indices) -> None:
        """Update the lacking resources of some nodes, and drop the classes for which a node has capacity."""
        count = len(self._at)
        lacks: NDArray[np.bool_] = self._needs[:count, :, None] - _soon(numbers, self._rows, changed) >= EPS
        short: NDArray[np.bool_] = np.logical_or.reduce(lacks, axis=1).all(axis=1)
        first = lacks.argmax(axis=1)
        differs = (self._first[:count, changed] != first).any(axis=1)
        for i in np.flatnonzero(short & differs).tolist():
            self._first[i, changed] = first[i]
            self._errors[i] = _errors(self._first[i], self._rows, table)
        if short.all():
            return
        kept = np.flatnonzero(short)
        ids = list(self._at)
        self._at = {ids[i]: at for at, i in enumerate(kept.tolist())}
        self._needs[: len(kept)], self._first[: len(kept)] = self._needs[kept], self._first[kept]
        self._errors = [self._errors[i] for i in kept.tolist()]


class SessionShortages(NamedTuple):
    """The shortages in one session."""

    kept: Shortages
    cluster: Cluster
    numbers: NodeNumbers

    def of(self, spec_class: SpecClass) -> FitErrors | None:
        """Why no node has capacity for a class; None: it is not known whether one has."""
        return self.kept.of(spec_class, self.cluster, self.numbers)

    def add(self, spec_class: SpecClass) -> None:
        """Add a class if every node lacks capacity for it."""
        self.kept.add(spec_class, self.cluster, self.numbers)


def _in_order(table: NodeTable) -> list[int]:
    """The rows of the resources, in the order in which the first lacking one is the reason."""
    names = list(table.rows)
    return sorted(range(len(names)), key=lambda row: (min(row, 3), names[row]))


def _soon(numbers: NodeNumbers, rows: Indices, nodes: Indices | slice) -> Floats:
    """What is free on some nodes after releasing tasks are deleted: [rows x nodes]."""
    free: Floats = numbers.idle[rows][:, nodes] + numbers.releasing[rows][:, nodes] - numbers.pipelined[rows][:, nodes]
    return free


def _errors(first: NDArray[np.int8], rows: Indices, table: NodeTable) -> FitErrors:
    names = list(table.rows)
    counts = np.bincount(first, minlength=len(rows)).tolist()
    return FitErrors({insufficient(names[row]): n for row, n in zip(rows, counts, strict=True) if n}, len(first))
