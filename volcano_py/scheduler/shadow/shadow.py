"""Shadow: gives the comparison its time, the cycles of ours, and the starts of the live scheduler."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

from prometheus_client import CollectorRegistry

from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.native_gangs import scheduled_condition
from volcano_py.scheduler.model.plan import Bind
from volcano_py.scheduler.run_once import CycleReport
from volcano_py.scheduler.shadow import report
from volcano_py.scheduler.shadow.comparison import Comparison
from volcano_py.scheduler.shadow.metrics import ShadowMetrics
from volcano_py.scheduler.shadow.observed import ObservedCluster
from volcano_py.scheduler.shadow.trial import evaluate

log = logging.getLogger(__name__)

_CHECK = 0.1
"""Seconds between two looks for what has settled."""


class Shadow:
    """The comparison of one process. `decide` runs a cycle over the model without assuming its plan."""

    def __init__(
        self, model: ObservedCluster, registry: CollectorRegistry, settle: float, decide: Callable[[], CycleReport]
    ) -> None:
        self.comparison = Comparison(settle)
        self._model = model
        self._metrics = ShadowMetrics(registry)
        self._settle = settle
        self._decide = decide
        self._begun = time.time()

    def decided(self, found: CycleReport) -> None:
        """A cycle over the model as it is has ended."""
        model = self._model
        jobs = {model.tasks[f"{op.namespace}/{op.name}"].job for op in found.plan if isinstance(op, Bind)}
        for uid, new in found.session.new_statuses.items():
            group = model.jobs[uid].pod_group
            if group is not None and group.status.phase in ("", "Pending") and new.phase in ("Inqueue", "Running"):
                jobs.add(uid)
        if model.clock is None:
            model.clock = time.time
        self.comparison.decided(jobs, self._is_unclear, time.time())
        # The plan was not assumed: the model stays as it is until an event changes it.
        model.dirty = model.jobs_moved = False

    async def run(self) -> None:
        """Compare until cancelled; then log the report."""
        try:
            while True:
                await asyncio.sleep(_CHECK)
                await self._evaluate()
                self._find_missed()
                self.comparison.skipped = self._model.skipped
                self._metrics.show(self.comparison)
        finally:
            for line in report.lines(self.comparison):
                log.info("%s", line)

    def document(self) -> dict[str, Any]:
        """The report as data."""
        return report.document(self.comparison, self._begun, time.time())

    async def _evaluate(self) -> None:
        for start in self._model.settled(time.time(), self._settle):
            try:
                verdict = evaluate(self._model, start, self._settle, self._decide)
            except Exception:
                log.exception("the start of %s cannot be compared", start.job)
                continue
            finally:
                self._model.evaluated(start)
            seconds = self.comparison.evaluated(start.job, start.first, len(start.pods), verdict)
            if seconds:
                self._metrics.earlier(seconds)
            await asyncio.sleep(0)

    def _find_missed(self) -> None:
        for uid in self.comparison.overdue(time.time(), self._model.last_bind, self._model.arrived):
            if not self._is_unclear(uid):
                self.comparison.miss(uid, self._live_reason(uid))

    def _is_unclear(self, uid: str) -> bool:
        """Whether the live scheduler has admitted or started a job, and the events about it are not complete."""
        job = self._model.jobs.get(uid)
        if job is None or job.pod_group is None:
            return False
        complete = job.counts[st.PENDING] and len(job.tasks) >= job.min_available
        return uid in self._model.starts or (job.pod_group.status.phase == "Inqueue" and not complete)

    def _live_reason(self, uid: str) -> str:
        """What the live scheduler states about a job."""
        job = self._model.jobs.get(uid)
        if job is not None and job.native is not None:
            stated = scheduled_condition(job.native)
            text = stated.message if stated is not None and stated.status == "False" else ""
            return f"the live scheduler states: {text}" if text else "the live scheduler states no reason"
        conditions = (job.pod_group.status.conditions if job is not None and job.pod_group is not None else None) or ()
        for condition in reversed(conditions):
            if condition.type in ("Waiting", "Unschedulable") and condition.status == "True" and condition.message:
                return f"the live scheduler states: {condition.message}"
        return "the live scheduler states no reason"
