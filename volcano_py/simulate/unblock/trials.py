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
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model import status as st
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.run_once import REGISTRY, run_once


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
    """Runs cycles over one model. `count`: how many it has run."""

    def __init__(
        self, cluster: Cluster, configuration: Configuration, now: float, seed: int = 0, registry: Registry = REGISTRY
    ) -> None:
        self.cluster = cluster
        self.configuration = configuration
        self.now = now
        self.seed = seed
        self.registry = registry
        self.count = 0

    def session(self, edits: Sequence[Edit] = ()) -> Session:
        """The session of a cycle over the changed model. It is valid only until the next trial."""
        with self.changed(edits):
            return self._run()

    def starts(self, uid: str, edits: Sequence[Edit]) -> bool:
        """Whether a job starts in the next cycle over the changed model."""
        with self.changed(edits):
            return started(self._run(), uid)

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

    def _run(self) -> Session:
        self.count += 1
        report = run_once(self.cluster, self.configuration, self.now, self.seed, registry=self.registry, assume=False)
        return report.session

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


def started(session: Session, uid: str) -> bool:
    """Whether a cycle binds pods of the job, and the job then has its minimum."""
    job = session.jobs.get(uid)
    if job is None:
        return False
    return job.counts[st.BINDING] > 0 and job.is_ready() and job.ready_num >= min(job.min_available, len(job.tasks))
