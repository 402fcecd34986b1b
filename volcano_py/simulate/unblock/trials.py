"""Trials: cycles over a changed model, whose changes are undone afterwards.

A trial costs one session. Nothing is copied: the changed objects are put into the model as by events, the cycle runs
without assuming its plan, and the old objects are put back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from volcano_py.scheduler.framework.config import Configuration
from volcano_py.scheduler.framework.registry import Registry
from volcano_py.scheduler.framework.session import Session, Shard
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.plan import Evict
from volcano_py.scheduler.run_once import REGISTRY, CycleReport, run_once


class Edit(NamedTuple):
    """One changed object; without `new` it is deleted."""

    kind: str
    namespace: str
    name: str
    new: Any = None

    @property
    def key(self) -> str:
        """The key in the model: without a namespace the name alone."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Trials:
    """Runs cycles over one model. `count`: how many it has run. `shard`: the nodes of the scheduler, if it has some."""

    def __init__(
        self,
        cluster: Cluster,
        configuration: Configuration,
        now: float,
        seed: int = 0,
        registry: Registry = REGISTRY,
        shard: Shard | None = None,
    ) -> None:
        self.cluster = cluster
        self.configuration = configuration
        self.now = now
        self.seed = seed
        self.registry = registry
        self.shard = shard
        self.count = 0
        self.work = 0
        """Tasks that these cycles have tried to place: what they cost."""

    def session(self, edits: Sequence[Edit] = ()) -> Session:
        """The session of a cycle over the changed model. It is valid only until the next trial."""
        with self.changed(edits):
            return self._run().session

    def starts(self, uid: str, edits: Sequence[Edit]) -> bool:
        """Whether a job starts in the next cycle over the changed model, or as soon as the pods have ended that this
        cycle evicts for it."""
        with self.changed(edits):
            report = self._run()
            return started(report.session, uid) or _evicts_for(report, uid)

    @contextmanager
    def changed(self, edits: Sequence[Edit]) -> Iterator[None]:
        """Context with the changed model."""
        before: list[Edit] = []
        try:
            for edit in edits:
                before.append(edit._replace(new=self._current(edit)))
                self._put(edit)
            yield
        finally:
            for edit in reversed(before):
                self._put(edit)

    def _run(self) -> CycleReport:
        self.count += 1
        report = run_once(
            self.cluster,
            self.configuration,
            self.now,
            self.seed,
            registry=self.registry,
            shard=self.shard,
            assume=False,
            report_jobs=False,
        )
        self.work += report.session.work.tasks_tried
        return report

    def _put(self, edit: Edit) -> None:
        if edit.new is None:
            self.cluster.remove(edit.kind, edit.namespace, edit.name)
        else:
            self.cluster.upsert(edit.kind, edit.new)

    def _current(self, edit: Edit) -> Any:
        cluster, key = self.cluster, edit.key
        if edit.kind == "Pod":
            task = cluster.tasks.get(key)
            return task.pod if task is not None else None
        if edit.kind == "Node":
            column = cluster.nodes.index.get(key)
            return cluster.nodes.objects[column] if column is not None else None
        if edit.kind == "Queue":
            queue = cluster.queues.get(key)
            return queue.object if queue is not None else None
        if edit.kind == "PodGroup":
            job = cluster.jobs.get(key)
            return job.pod_group if job is not None and not job.shadow else None
        if edit.kind == "PriorityClass":
            return cluster.priority_classes.get(key)
        return cluster.others.get(edit.kind, {}).get(key)


def _evicts_for(report: CycleReport, uid: str) -> bool:
    """Whether pods are evicted for a job, and their capacity is sufficient for its minimum."""
    job = report.session.jobs.get(uid)
    if job is None or not job.counts[st.PIPELINED] or not job.is_pipelined():
        return False
    return any(isinstance(operation, Evict) and operation.evictor == uid for operation in report.plan)


def started(session: Session, uid: str) -> bool:
    """Whether a cycle binds pods of the job, and the job then has its minimum."""
    job = session.jobs.get(uid)
    if job is None:
        return False
    return job.counts[st.BINDING] > 0 and job.is_ready() and job.ready_num >= min(job.min_available, len(job.tasks))
