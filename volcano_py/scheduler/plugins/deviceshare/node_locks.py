"""Locks of nodes: while a pod with devices is bound to a node, no other pod with devices can be bound to it, because
the device plugin serves one pod at a time. Volcano: plugins/util/nodelock.

The lock is an annotation of the node with the time of the locking; the device plugin removes it when the pod has its
devices. A lock older than five minutes is stale and ignored.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from volcano_py.api.core import Node
from volcano_py.api.meta import parse_time
from volcano_py.scheduler.framework.search.fit_errors import Reason
from volcano_py.scheduler.framework.search.node_rules import DOMAIN, Codes, Scope
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.pre_bind import LOCK_EXPIRES
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.plugins.deviceshare.ledger import Ledger


@dataclass
class TakenLocks:
    """Locks that the Node object may not contain yet: (lock, node) → the time, and the Node object at that time. With
    the next version of the Node object its annotation decides."""

    at: dict[tuple[str, str], tuple[float, Node]] = field(default_factory=dict)


class NodeLocks:
    """The locks of all nodes in a session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._taken = session.cluster.keep(TakenLocks).at
        for key in [k for k, (at, node) in self._taken.items() if not self._counts(k[1], at, node)]:
            del self._taken[key]

    def _counts(self, name: str, at: float, then: Node) -> bool:
        """Whether a lock of a session still counts: until the Node object changes, or the lock expires."""
        node = self._session.table.index.get(name)
        same = node is not None and self._session.table.objects[node] is then
        return same and _holds(at, self._session.now)

    def error(self, lock: str, node: int) -> str | None:
        """Why a node cannot be locked; None if it can."""
        table = self._session.table
        taken = self._taken.get((lock, table.names[node]))
        at = taken[0] if taken is not None else taken_at(table.objects[node], lock)
        if at is None or not _holds(at, self._session.now):
            return None
        return f"node {table.names[node]} has been locked within 5 minutes"

    def take(self, lock: str, node: int) -> None:
        table = self._session.table
        self._taken[lock, table.names[node]] = (self._session.now, table.objects[node])

    def give_back(self, lock: str, node: int) -> None:
        self._taken.pop((lock, self._session.table.names[node]), None)


class LockFilter:
    """Reject nodes that are locked for a pod that needs the lock."""

    scope: Literal[Scope.DOMAIN] = DOMAIN

    def __init__(self, session: Session, locks: NodeLocks, ledger: Ledger) -> None:
        self.name = f"deviceshare/{ledger.type.name}/lock"
        self.reasons = [Reason("the node is locked while another pod gets its devices")]
        self._count = len(session.table)
        self._locks = locks
        self._ledger = ledger

    def applies(self, task: Task) -> bool:
        demand = self._ledger.demand(task)
        return demand is not None and self._ledger.type.locks(demand)

    def filter(self, task: Task) -> Codes:
        codes = np.zeros(self._count, dtype=np.int8)
        for node in self._ledger.columns():
            codes[node] = self._locks.error(self._ledger.type.lock, node) is not None
        return codes


def taken_at(node: Node, lock: str) -> float | None:
    """When a node was locked, in seconds since the epoch, by its annotation; None: it is not locked, or the text is not
    a time."""
    text = (node.metadata.annotations or {}).get(lock)
    try:
        return parse_time(text) if text else None
    except ValueError:
        return None


def _holds(at: float, now: float) -> bool:
    return now - at < LOCK_EXPIRES
