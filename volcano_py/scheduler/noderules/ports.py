"""Host ports, for sessions. kube-scheduler: NodePorts."""

from __future__ import annotations

from typing import Literal

import numpy as np

from volcano_py.scheduler.framework.search.fit_errors import FitCode, Reason
from volcano_py.scheduler.framework.search.node_rules import DOMAIN, Codes, Scope
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.rules.ports import UsedPorts


class NodePortsRule:
    """Rejects nodes on which a requested host port is in use (same protocol, same or any address)."""

    name = "NodePorts"
    scope: Literal[Scope.DOMAIN] = DOMAIN
    limits_pods = True
    reasons = [Reason("node(s) didn't have free ports for the requested pod ports", FitCode.UNSCHEDULABLE)]

    def __init__(self, session: Session) -> None:
        self._session = session
        self._used: UsedPorts | None = None
        """Counted from the first task with host ports on."""

    def applies(self, task: Task) -> bool:
        return bool(task.spec_class.ports)

    def _in_use(self) -> UsedPorts:
        if self._used is None:
            used = self._used = UsedPorts()

            def move(task: Task, node: int, sign: int) -> None:
                (used.add if sign > 0 else used.remove)(task.spec_class.ports, node)

            self._session.kube.on_pods(move)
        return self._used

    def filter(self, task: Task) -> Codes:
        codes = np.zeros(len(self._session.table), dtype=np.int8)
        codes[list(self._in_use().in_conflict(task.spec_class.ports))] = 1
        return codes
