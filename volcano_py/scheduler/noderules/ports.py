"""Host ports. kube-scheduler: NodePorts."""

from __future__ import annotations

from typing import Literal

import numpy as np

from volcano_py.api.core import ContainerPort
from volcano_py.scheduler.framework.fit_errors import Code, Reason
from volcano_py.scheduler.framework.node_rules import DOMAIN, Codes, Scope
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.task import Task

_ANY = "0.0.0.0"


class NodePorts:
    """Rejects nodes on which a requested host port is in use (same protocol, same or any address)."""

    name = "NodePorts"
    scope: Literal[Scope.DOMAIN] = DOMAIN
    reasons = [Reason("node(s) didn't have free ports for the requested pod ports", Code.UNSCHEDULABLE)]

    def __init__(self, session: Session) -> None:
        self._session = session
        self._used: dict[tuple[str, int], dict[int, set[str]]] | None = None

    def applies(self, task: Task) -> bool:
        return bool(task.spec_class.ports)

    def _in_use(self) -> dict[tuple[str, int], dict[int, set[str]]]:
        if self._used is None:
            self._used = {}
            self._session.kube.on_pods(self._move)
        return self._used

    def _move(self, task: Task, node: int, sign: int) -> None:
        """Count or uncount the ports of a task. If two pods have the same port on a node, which the kubelet prevents,
        the first one that leaves frees it, as in kube-scheduler."""
        assert self._used is not None
        for p in task.spec_class.ports:
            here = self._used.setdefault(_port(p), {}).setdefault(node, set())
            if sign > 0:
                here.add(p.host_ip or _ANY)
            else:
                here.discard(p.host_ip or _ANY)

    def filter(self, task: Task) -> Codes:
        used = self._in_use()
        codes = np.zeros(len(self._session.table), dtype=np.int8)
        for p in task.spec_class.ports:
            ip = p.host_ip or _ANY
            for node, taken in used.get(_port(p), {}).items():
                if any(_ANY in (ip, other) or ip == other for other in taken):
                    codes[node] = 1
        return codes


def _port(p: ContainerPort) -> tuple[str, int]:
    return p.protocol or "TCP", p.host_port
