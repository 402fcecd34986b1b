"""conformance: protects system pods from eviction."""

from __future__ import annotations

from typing import Any

from tests.reference.session import Session
from tests.reference.task import Task
from tests.reference.votes import PERMIT

CRITICAL = ("system-cluster-critical", "system-node-critical")


def conformance(session: Session, arguments: dict[str, Any]) -> None:
    def not_of_the_system(evictor: Any, candidates: list[Task]) -> tuple[list[Task], int]:
        victims = []
        for c in candidates:
            if c.pod["spec"].get("priorityClassName") not in CRITICAL and c.namespace != "kube-system":
                victims.append(c)
        return victims, PERMIT

    for point in ("Preemptable", "Reclaimable", "UnifiedEvictable"):
        session.votes.register(point, "conformance", not_of_the_system)
