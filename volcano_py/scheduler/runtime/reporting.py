"""Reports of the scheduler about itself: log lines, Events on its ConfigMap, metrics. Volcano: klog and metrics."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from volcano_py.kube.remedies import for_denied
from volcano_py.scheduler.cache.cache import Cache
from volcano_py.scheduler.configuration.reload import ConfigurationSource
from volcano_py.scheduler.dispatch.handle import DispatcherHandle
from volcano_py.scheduler.dispatch.messages import Result
from volcano_py.scheduler.framework.callbacks import once_each
from volcano_py.scheduler.model.plan import Bind, Event, Operation
from volcano_py.scheduler.run_once import CycleReport
from volcano_py.scheduler.runtime.failed_cycles import FailedCycles
from volcano_py.scheduler.runtime.metrics import Metrics
from volcano_py.scheduler.tracing.job_traces import JobTraces

log = logging.getLogger(__name__)

REPEAT_AFTER = 600.0
"""Seconds after which the failure of a write with the same reason is logged again."""
MAX_DISTINCT_WARNINGS = 1_000
"""Different warnings since the configuration was read; more are not logged."""


class Reporter:
    """Reports cycles and results; each warning once per configuration."""

    def __init__(
        self,
        metrics: Metrics,
        cache: Cache,
        handle: DispatcherHandle,
        configuration: ConfigurationSource,
        failed_cycles: FailedCycles,
        traces: JobTraces | None = None,
    ) -> None:
        self.metrics = metrics
        self._traces = traces
        self._cache = cache
        self._handle = handle
        self._configuration = configuration
        self._failed_cycles = failed_cycles
        self._reported_warnings: set[str] = set()
        self._failures = Repeated()

    def configuration_changed(self) -> None:
        """Report warnings again that occur with the new configuration, too."""
        self._reported_warnings.clear()

    def cycle(self, number: int, report: CycleReport, seconds: float, written: bool = True) -> None:
        """Report a cycle that has ended. `written`: its plan goes to the API server."""
        if written and (report.bound or report.evicted):
            log.info("cycle %d: %d bound, %d evicted in %.0f ms", number, report.bound, report.evicted, seconds * 1000)
            for line in report.session.audit:
                log.info("%s", line)
        try:
            self.metrics.cycle(report, seconds)
            self._warnings(report)
        except Exception:
            # The gauges of a user's plugin may contradict each other.
            log.exception("cycle %d: its metrics and warnings cannot be reported", number)

    def emitted(self, operations: Sequence[Operation]) -> None:
        """Report operations that were handed to the dispatcher."""
        now = time.time()
        self.metrics.emitted(operations, self._cache.model, now)
        if self._traces is not None:
            self._traces.decided(operations, self._cache.model, now)

    def forget_job(self, namespace: str, name: str) -> None:
        """A job is gone: its series end."""
        self.metrics.forget_job(namespace, name)
        if self._traces is not None:
            self._traces.forget(namespace, name)

    def result(self, op: Operation, result: Result) -> None:
        """Report the result of an operation."""
        now = time.time()
        self.metrics.result(op, result, self._cache.model, now)
        if self._traces is not None and isinstance(op, Bind):
            self._traces.bind_ended(op, result.outcome in ("done", "superseded"), self._cache.model, now)
        if result.outcome == "failed":
            self._failed(op, result.message)

    def _failed(self, op: Operation, message: str) -> None:
        """Log why a write failed, once for each verb and reason in ten minutes: many objects may have the same one."""
        verb = type(op).__name__
        name = f"{getattr(op, 'namespace', '')}/{op.name}".strip("/")
        quiet = isinstance(op, Event) or _was_deleted(op, message)
        more = 0 if quiet else self._failures.seen(f"{verb} {message.replace(op.name, '*')}", time.monotonic())
        log.log(
            logging.DEBUG if quiet or more is None else logging.WARNING,
            "%s of %s: %s%s%s",
            verb,
            name,
            message,
            for_denied(message),
            f" (and {more} times more since the last line about it)" if more else "",
        )

    def expose(self) -> bytes:
        """All metrics in Prometheus' text format."""
        m = self.metrics
        m.leading.set(self._handle.leading)
        m.unanswered.set(self._handle.unanswered)
        m.restarts.set(self._handle.restarts)
        counts = self._cache.quarantine.counts()
        for kind in self._cache.informers:
            m.quarantined.labels(kind).set(counts.get(kind, 0))
        m.configuration_invalid.set(bool(self._configuration.problem))
        m.failed_cycles.set(self._failed_cycles.count)
        m.connected.set(self._cache.connected)
        m.unknown.set(self._cache.resync.unknown)
        return m.expose()

    def _warnings(self, report: CycleReport) -> None:
        for text in report.warnings:
            if self._warn(text, text):
                self._configuration.warn(text)
        for fault, _ in once_each(report.faults):
            at = f" at {fault.subject}" if fault.subject else ""
            self._warn(
                f"{fault.plugin} {fault.point} {fault.where or fault.error}",
                f"plugin {fault.plugin} failed in {fault.point}{at}: {fault.text}; "
                "the cycle continues with the answer that changes least",
            )

    def _warn(self, key: str, text: str) -> bool:
        """Log a warning once; whether it was new."""
        new = key not in self._reported_warnings and len(self._reported_warnings) < MAX_DISTINCT_WARNINGS
        if new:
            self._reported_warnings.add(key)
            log.warning("%s", text)
        return new


def _was_deleted(op: Operation, message: str) -> bool:
    """Whether a write came too late, as the object had just been deleted, or its namespace: that is normal operation.

    A missing kind has another message, and is a warning.
    """
    if message.endswith((f'"{op.name}" not found', " was deleted")):
        return True
    return "because it is being terminated" in message


class Repeated:
    """Which of many equal log lines are written: the first, and one in ten minutes with the number of the others."""

    def __init__(self) -> None:
        self._lines: dict[str, tuple[float, int]] = {}

    def seen(self, text: str, now: float) -> int | None:
        """None: this line is left out; otherwise how many were left out since the last one."""
        last, left_out = self._lines.get(text, (None, 0))
        if last is not None and now - last < REPEAT_AFTER:
            self._lines[text] = last, left_out + 1
            return None
        if len(self._lines) >= MAX_DISTINCT_WARNINGS:
            self._lines = {line: kept for line, kept in self._lines.items() if now - kept[0] < REPEAT_AFTER}
        if len(self._lines) < MAX_DISTINCT_WARNINGS:
            self._lines[text] = now, 0
        return left_out
