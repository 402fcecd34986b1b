"""conformance: pods that the cluster itself lives on are nobody's victims. Volcano: plugin conformance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.votes import PERMIT
from volcano_py.scheduler.model.task import Task

CRITICAL = frozenset(("system-cluster-critical", "system-node-critical"))
SYSTEM_NAMESPACE = "kube-system"


class Conformance:
    """No arguments."""

    name = "conformance"

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        pass

    def on_session_open(self, session: Session) -> None:
        for point in ("preemptable", "reclaimable", "unified_evictable"):
            session.votes.add(point, self.name, _unprotected)


def _unprotected(_: object, candidates: list[Task]) -> tuple[list[Task], int]:
    return [
        t for t in candidates if t.pod.spec.priority_class_name not in CRITICAL and t.namespace != SYSTEM_NAMESPACE
    ], PERMIT
