"""Limits of attached volumes: rejects nodes to which no further volume of a driver can be attached. kube-scheduler:
NodeVolumeLimits.
"""

from __future__ import annotations

from collections import Counter
from typing import Literal

import numpy as np

from volcano_py.scheduler.framework.search.fit_errors import FitCode, Reason
from volcano_py.scheduler.framework.search.node_rules import LOCAL, Codes, Floats, Scope
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.nodes.some_nodes import Numbers, SomeNodes
from volcano_py.scheduler.rules.volumes.limits import Handle, exceeds


class NodeVolumeLimitsRule:
    """A volume that several pods of a node use counts once. A driver without a limit on a node accepts any number
    there."""

    name = "NodeVolumeLimits"
    scope: Literal[Scope.LOCAL] = LOCAL
    limits_pods = True
    reasons = [Reason("node(s) exceed max volume count", FitCode.UNSCHEDULABLE)]

    def __init__(self, session: Session) -> None:
        self._session = session
        self._attached: dict[int, Counter[Handle]] | None = None
        self._free: dict[str, Floats] = {}
        """How many more volumes can be attached to each node, by driver; drivers without any limit are left out."""

    def applies(self, task: Task) -> bool:
        return task.claims.volumes is not None and bool(task.claims.volumes.handles)

    def _open(self) -> dict[int, Counter[Handle]]:
        """The volumes attached to each node; computed for the first pod with volumes."""
        if self._attached is None:
            self._attached = {}
            session = self._session
            of = session.cluster.claims.storage
            for driver in of.drivers():
                limited = of.limited_nodes((driver,))
                if limited:
                    self._free[driver] = np.array([limited.get(name, np.inf) for name in session.table.names])
            for name in of.attached:
                place = session.table.index.get(name)
                if place is not None:
                    for handle in of.handles_attached_to(name):
                        self._attach(place, handle, +1)
            session.kube.on_pods(self._move)
        return self._attached

    def _move(self, task: Task, node: int, sign: int) -> None:
        if task.claims.volumes is not None and self._free:
            for driver, handle, _ in task.claims.volumes.handles:
                self._attach(node, (driver, handle), sign)

    def _attach(self, node: int, handle: Handle, sign: int) -> None:
        assert self._attached is not None
        here = self._attached.setdefault(node, Counter())
        before = here[handle] > 0
        here[handle] += sign
        after = here[handle] > 0
        if not after:
            del here[handle]
        if before != after and handle[0] in self._free:
            self._free[handle[0]][node] -= int(after) - int(before)

    def filter(self, task: Task, numbers: Numbers) -> Codes:
        attached = self._open()
        nodes = numbers.nodes if isinstance(numbers, SomeNodes) else np.arange(len(self._session.table))
        own, shared = self._new(task)
        codes = np.zeros(len(nodes), dtype=np.int8)
        for driver in {*own, *(d for d, _ in shared)}:
            free = self._free.get(driver)
            if free is None:
                continue
            requested = np.full(len(nodes), float(own[driver]))
            for handle in shared:
                if handle[0] == driver:
                    requested += [not attached.get(int(i), Counter())[handle] > 0 for i in nodes]
            codes |= ((requested > 0) & (requested > free[nodes])).astype(np.int8)
        return codes

    def filter_node(self, task: Task, node: int) -> int:
        attached = self._open()
        assert task.claims.volumes is not None
        free = {driver: float(row[node]) for driver, row in self._free.items()}
        return int(exceeds(task.claims.volumes.handles, attached.get(node, ()), free))

    def _new(self, task: Task) -> tuple[Counter[str], list[Handle]]:
        """The number of volumes of each driver that no other pod uses, and the handles of the others."""
        assert task.claims.volumes is not None
        handles = dict.fromkeys(task.claims.volumes.handles)
        return (
            Counter(driver for driver, _, alone in handles if alone),
            [(driver, handle) for driver, handle, alone in handles if not alone],
        )
