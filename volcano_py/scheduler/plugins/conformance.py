"""conformance: protect critical pods of the cluster. Volcano: plugin conformance."""

from __future__ import annotations

from volcano_py.scheduler.framework.extension_points.victims import Basis
from volcano_py.scheduler.framework.plugin import Plugin
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.task import Task

CRITICAL = frozenset(("system-cluster-critical", "system-node-critical"))
SYSTEM_NAMESPACE = "kube-system"


class Conformance(Plugin):
    """No arguments."""

    name = "conformance"

    def on_session_open(self, session: Session) -> None:
        session.add_preemptable(_unprotected, basis=Basis.PROTECTION)
        session.add_reclaimable(_unprotected, basis=Basis.PROTECTION)
        session.add_unified_evictable(_unprotected, basis=Basis.PROTECTION)


def _unprotected(_: object, candidates: list[Task]) -> list[Task]:
    return [t for t in candidates if t.pod.spec.priority_class_name not in CRITICAL and t.namespace != SYSTEM_NAMESPACE]
