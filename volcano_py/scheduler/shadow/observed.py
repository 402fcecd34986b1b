"""ObservedCluster: a model that notes what the live scheduler does, as watch events show it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from volcano_py.api import core
from volcano_py.api.scheduling import PodGroup
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.group_names import NATIVE_KINDS
from volcano_py.scheduler.model.jobs.task import Task

PATIENCE = 10
"""Settle times after which something counts as complete, even if events still come."""
_STARTS_KEPT = 1_000
"""Limit of the starts that wait to be compared."""
_ENDED_KEPT = 10_000
"""Limit of the pods that are kept after their end."""


@dataclass
class ObservedStart:
    """Pods of one job that got their nodes, until a decision of ours is compared with it."""

    job: str
    first: float
    last: float
    """When the last event about it came."""
    group: PodGroup | None
    """As it was before the first of the pods had its node; None: the job has no PodGroup of its own."""
    pods: dict[str, core.Pod] = field(default_factory=dict)
    """By key, as they were before."""
    nodes: dict[str, str] = field(default_factory=dict)
    """By the key of the pod."""


class Ended(NamedTuple):
    """A pod that has freed capacity, as it was before."""

    time: float
    pod: core.Pod


class ObservedCluster(Cluster):
    """A model of which each change is noted. `clock` gives seconds since the epoch; None: nothing is noted yet."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.clock: Callable[[], float] | None = None
        self.starts: dict[str, ObservedStart] = {}
        """By job, in the order in which they began."""
        self.ended: deque[Ended] = deque(maxlen=_ENDED_KEPT)
        """Oldest first."""
        self.arrived: dict[str, float] = {}
        """When the newest pod of a job came, or a change of its PodGroup that may let it start."""
        self.last_bind = 0.0
        self.skipped = 0
        """Pods that got their nodes while too many starts were to be compared."""

    def upsert(self, kind: str, obj: Any) -> None:
        """As that of the model."""
        if self.clock is None:
            super().upsert(kind, obj)
            return
        now, key = self.clock(), getattr(obj.metadata, "key", "")
        task = self.tasks.get(key) if kind == "Pod" else None
        native = self.native_groups.get(kind, key) if kind in NATIVE_KINDS else None
        before = task.pod if task is not None else None
        if kind == "PodGroup":
            job = self.jobs.get(key)
            known = job.pod_group if job is not None and not job.shadow else None
            if known is None or (known.spec, known.status.phase) != (obj.spec, obj.status.phase):
                self.arrived[key] = now
        elif task is not None and before is not None and before.metadata.uid == obj.metadata.uid:
            self._updates(task, before, obj, now)
        elif kind == "Pod" and task is not None:
            self._note_end(task, now)
        super().upsert(kind, obj)
        if kind in NATIVE_KINDS and (native is None or native.spec != obj.spec):
            self.arrived[self.native_groups.root_of(kind, key)] = now
        if kind == "Pod" and (before is None or before.metadata.uid != obj.metadata.uid):
            task = self.tasks.get(key)
            if task is not None and task.job:
                self.arrived[task.job] = now

    def remove(self, kind: str, namespace: str, name: str) -> None:
        """As that of the model."""
        if self.clock is not None and kind == "Pod":
            task = self.tasks.get(f"{namespace}/{name}")
            if task is not None:
                self._note_end(task, self.clock())
        super().remove(kind, namespace, name)
        if kind == "PodGroup" and f"{namespace}/{name}" not in self.jobs:
            self.arrived.pop(f"{namespace}/{name}", None)

    def settled(self, now: float, settle: float) -> list[ObservedStart]:
        """The starts about which no event has come for `settle` seconds, oldest first. Drops what none needs."""
        needed = min((s.first for s in self.starts.values()), default=now) - settle
        while self.ended and self.ended[0].time < needed:
            self.ended.popleft()
        self.arrived = {uid: when for uid, when in self.arrived.items() if when >= needed}
        limit, longest = now - settle, now - PATIENCE * settle
        return [start for start in self.starts.values() if start.last <= limit or start.first <= longest]

    def evaluated(self, start: ObservedStart) -> None:
        """A start needs not be kept any more."""
        del self.starts[start.job]

    def _updates(self, task: Task, before: core.Pod, after: core.Pod, now: float) -> None:
        job = self.jobs.get(task.job)
        if job is not None and after.spec.node_name and not before.spec.node_name:
            self.last_bind = now
            if job.uid not in self.starts and len(self.starts) >= _STARTS_KEPT:
                self.skipped += 1
                return
            group = job.pod_group if not job.shadow and job.native is None else None
            start = self.starts.setdefault(job.uid, ObservedStart(job.uid, now, now, group))
            start.last = now
            start.pods[task.key] = before
            start.nodes[task.key] = after.spec.node_name
        elif after.status.phase in ("Succeeded", "Failed"):
            self._note_end(task, now)

    def _note_end(self, task: Task, now: float) -> None:
        if task.takes_capacity and task.status != st.PENDING:
            self.ended.append(Ended(now, task.pod))
