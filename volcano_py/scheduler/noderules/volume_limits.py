"""Limits of attached volumes: nodes to which no further volume of a driver can be attached are rejected.
kube-scheduler: NodeVolumeLimits.
"""

from __future__ import annotations

from collections import Counter
from typing import Literal

import numpy as np

from volcano_py.scheduler.framework.fit_errors import Code, Reason
from volcano_py.scheduler.framework.node_rules import LOCAL, Codes, Floats, Scope
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.node_table import Numbers, SomeNodes
from volcano_py.scheduler.model.task import Task

_Handle = tuple[str, str]


class NodeVolumeLimits:
    """A volume that several pods of a node use counts once. Drivers without a limit on a node take any number there."""

    name = "NodeVolumeLimits"
    scope: Literal[Scope.LOCAL] = LOCAL
    reasons = [Reason("node(s) exceed max volume count", Code.UNSCHEDULABLE)]

    def __init__(self, session: Session) -> None:
        self._session = session
        self._attached: dict[int, Counter[_Handle]] | None = None
        self._free: dict[str, Floats] = {}
        """What can still be attached to each node, by driver; drivers without any limit are left out."""

    def applies(self, task: Task) -> bool:
        return task.claims.volumes is not None and bool(task.claims.volumes.handles)

    def _open(self) -> dict[int, Counter[_Handle]]:
        """What is attached to each node; made when the first pod asks."""
        if self._attached is None:
            self._attached = {}
            session, count = self._session, len(self._session.table)
            of = session.cluster.claims.storage
            for i, name in enumerate(session.table.names):
                node = of.csi_node(name)
                for driver in (node.spec.drivers if node is not None else None) or ():
                    if driver.allocatable is not None and driver.allocatable.count is not None:
                        free = self._free.setdefault(driver.name, np.full(count, np.inf))
                        free[i] = driver.allocatable.count
            for attachment in of.attachments():
                place = session.table.index.get(attachment.spec.node_name)
                volume = of.volume(attachment.spec.source.persistent_volume_name or "")
                if place is not None and volume is not None and volume.spec.csi is not None:
                    self._attach(place, (volume.spec.csi.driver, volume.spec.csi.volume_handle), +1)
            session.kube.on_pods(self._move)
        return self._attached

    def _move(self, task: Task, node: int, sign: int) -> None:
        if task.claims.volumes is not None and self._free:
            for driver, handle, _ in task.claims.volumes.handles:
                self._attach(node, (driver, handle), sign)

    def _attach(self, node: int, handle: _Handle, sign: int) -> None:
        assert self._attached is not None
        here = self._attached.setdefault(node, Counter())
        before = here[handle] > 0
        here[handle] += sign
        after = here[handle] > 0
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
            wanted = np.full(len(nodes), float(own[driver]))
            for handle in shared:
                if handle[0] == driver:
                    wanted += [not attached.get(int(i), Counter())[handle] > 0 for i in nodes]
            codes |= ((wanted > 0) & (wanted > free[nodes])).astype(np.int8)
        return codes

    def filter_node(self, task: Task, node: int) -> int:
        attached = self._open()
        if not self._free:
            return 0
        own, shared = self._new(task)
        here = attached.get(node, Counter())
        for handle in shared:
            own[handle[0]] += not here[handle] > 0
        return int(any(n and d in self._free and n > self._free[d][node] for d, n in own.items()))

    def _new(self, task: Task) -> tuple[Counter[str], list[_Handle]]:
        """How many volumes of each driver nothing else uses, and the others."""
        assert task.claims.volumes is not None
        handles = dict.fromkeys(task.claims.volumes.handles)
        return (
            Counter(driver for driver, _, alone in handles if alone),
            [(driver, handle) for driver, handle, alone in handles if not alone],
        )
