"""Planner: the plan of one cycle. Sent, counted and assumed in one place. Volcano: Statement.Commit, and the cache's
Bind, Evict and status updaters.

Operations are sent statement by statement while the cycle runs, so that the dispatcher can begin. The model assumes
them when the session has ended, because the session reads the model; it does so also if the cycle fails half-way, since
operations that were sent will be written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import cast

from volcano_py.api import scheduling as api
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.plan import Bind, Emit, Operation, PodGroupStatus


class Planner:
    """`send` is called with each statement's operations at once; None: nothing is sent (simulations)."""

    def __init__(self, model: Cluster, send: Emit | None = None) -> None:
        self._model = model
        self._send = send
        self.operations: list[Operation] = []
        """All operations of the cycle so far."""

    def submit(self, operations: Sequence[Operation]) -> None:
        """Add operations that belong together."""
        self.operations.extend(operations)
        if self._send is not None:
            self._send(operations)

    def counts(self) -> Counter[type[Operation]]:
        """How many operations of each kind the plan has."""
        return Counter(map(type, self.operations))

    def assume(self, statuses: Mapping[str, api.PodGroupStatus]) -> None:
        """Count the plan as done in the model, until events confirm it or a result undoes it.

        `statuses`: the PodGroup statuses that the session has decided, by job; those of native gangs are not written.
        """
        for kind, group in groupby(self.operations, key=type):
            if kind is Bind:
                self._model.assume_binds(cast(Sequence[Bind], list(group)))
            else:
                self._assume_each(group, statuses)
        for uid, status in statuses.items():
            self._model.assume_status(uid, status)

    def _assume_each(self, operations: Iterable[Operation], statuses: Mapping[str, api.PodGroupStatus]) -> None:
        for operation in operations:
            uid = f"{operation.namespace}/{operation.name}" if isinstance(operation, PodGroupStatus) else ""
            if uid not in statuses:
                self._model.assume(operation)
