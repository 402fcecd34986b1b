"""What the cache audit does beside the cache: it withdraws binds, and reports. Volcano: none."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection

from volcano_py.scheduler.cache.audit.audit import Audit
from volcano_py.scheduler.cache.audit.drift import Drift
from volcano_py.scheduler.dispatch.handle import DispatcherHandle
from volcano_py.scheduler.dispatch.messages import Revoke
from volcano_py.scheduler.model.nodes.held_nodes import HeldNodes
from volcano_py.scheduler.model.plan import Bind, Event
from volcano_py.scheduler.runtime.metrics import Metrics

log = logging.getLogger(__name__)

REASON = "CacheDrift"


class Auditing:
    """The running scheduler, for the audit. `write_event(event)`: as for the quarantine."""

    def __init__(self, handle: DispatcherHandle, metrics: Metrics, write_event: Callable[[Event], bool]) -> None:
        self._handle = handle
        self._metrics = metrics
        self._write_event = write_event

    def pending(self) -> Collection[str]:
        """UIDs of pods with a bind or an eviction without a result."""
        return {op.uid for op in self._handle.pending()}

    def withdraw(self, nodes: Collection[str] | None, why: str) -> None:
        """Withdraw binds that wait for these nodes, or for any."""
        waiting = {op.node for op in self._handle.pending() if isinstance(op, Bind)}
        for node in sorted(waiting if nodes is None else waiting.intersection(nodes)):
            self._handle.revoke(Revoke("Node", node, why=why))

    def drifted(self, drift: Drift, reported: bool) -> None:
        """Count a difference; report it by log line and Event."""
        self._metrics.drift.labels(drift.kind, drift.form).inc()
        if reported:
            log.warning("%s %s: %s", drift.kind, drift.key, drift.text)
            namespace, _, name = drift.key.rpartition("/")
            if self._handle.leading:
                text = f"cache audit: {drift.text}"
                self._write_event(Event(drift.kind, namespace, name, drift.uid, "Warning", REASON, text[:1000]))


def expose(metrics: Metrics, audit: Audit | None, held: HeldNodes, nodes: int) -> None:
    """Set the gauges of the audit."""
    metrics.held_nodes.set(nodes if held.all_nodes else len(held.why))
    if audit is not None:
        metrics.audit_rounds.set(audit.rounds)
        metrics.audit_seconds.set(audit.seconds)
        metrics.audit_requests.set(audit.requests)
        metrics.audit_bytes.set(audit.bytes)
        metrics.audit_unread.set(len(audit.unread))
