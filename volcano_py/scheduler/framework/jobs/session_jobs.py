"""The jobs of a session, without those that need no work. Volcano builds a JobInfo of every job for every session.

A job is settled when all of its pods are placed or finished, it requests no more than it holds, and a session has found
nothing to report about it. Sessions skip a settled job until an event changes it: their cost depends on the number of
jobs that changed. The SessionJob of a settled job is created when a plugin or an action reads it, for example as the
job of a victim.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.job import Job
from volcano_py.scheduler.model.resource_names import CPU, MEMORY


class SessionJobs:
    """By UID, in the order of the UIDs, with the methods of a Mapping. Iteration over all of them creates the settled
    ones, too.

    It is no subclass of Mapping, whose look-ups are slower: actions and plugins look up the job of every task.
    """

    def __init__(self, active: dict[str, SessionJob], settled: Set[str], make: Callable[[str], SessionJob]) -> None:
        self._active = list(active.values())
        self._made = active
        """The active jobs, and the settled ones that were created."""
        self._settled = settled
        self._make = make

    def active(self) -> Sequence[SessionJob]:
        """The jobs that were not settled when the session opened, in the order of their UIDs."""
        return self._active

    def touched(self) -> Sequence[SessionJob]:
        """The active jobs and the settled ones that were created, in the order of their UIDs."""
        if len(self._made) == len(self._active):
            return self._active
        return [job for _, job in sorted(self._made.items())]

    def uids(self) -> Set[str]:
        """All UIDs, for many look-ups."""
        return self._made.keys() | self._settled

    def __getitem__(self, uid: str) -> SessionJob:
        job = self.get(uid)
        if job is None:
            raise KeyError(uid)
        return job

    def get(self, uid: str, default: SessionJob | None = None) -> SessionJob | None:
        """The job; `default` if there is none."""
        job = self._made.get(uid)
        if job is None:
            if uid not in self._settled:
                return default
            job = self._made[uid] = self._make(uid)
        return job

    def __contains__(self, uid: object) -> bool:
        return uid in self._made or uid in self._settled

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._made.keys() | self._settled) if self._settled else self._made)

    def __len__(self) -> int:
        return len(self._made.keys() | self._settled)

    def keys(self) -> list[str]:
        return list(self)

    def values(self) -> list[SessionJob]:
        return [self[uid] for uid in self]

    def items(self) -> list[tuple[str, SessionJob]]:
        return [(uid, self[uid]) for uid in self]


@dataclass
class SettledJobs:
    """State between sessions: which jobs are settled, and which are not."""

    settled: set[str] = field(default_factory=set)
    active: set[str] = field(default_factory=set)
    _queues: set[str] = field(default_factory=set)
    """The queues at the last opening."""
    _position: int = -1
    _rules: Any = None

    def refresh(self, cluster: Cluster, rules: object) -> None:
        """Called when a session opens: jobs that have changed are active again; all are active after a change of the
        rules or the deletion of a queue.

        `rules`: the configuration; other plugins may report something about the same jobs.
        """
        changed = cluster.job_changes.since(self._position) if self._position >= 0 else None
        self._position = cluster.job_changes.position
        lost, self._queues = self._queues - cluster.queues.keys(), set(cluster.queues)
        if changed is None or rules is not self._rules or lost:
            self._rules = rules
            self.settled, self.active = set(), set(cluster.jobs)
            return
        for uid in changed:
            self.settled.discard(uid)
            if uid in cluster.jobs:
                self.active.add(uid)
            else:
                self.active.discard(uid)

    def settle(self, uids: Iterable[str]) -> None:
        """Called when a session closes: these jobs are at rest, and there was nothing to report about them."""
        for uid in uids:
            self.active.discard(uid)
            self.settled.add(uid)


def rests(job: Job) -> bool:
    """Whether a session can do nothing for the job, and what it holds and requests is the same as in the model."""
    group, counts = job.pod_group, job.counts
    if group is None or job.needs_sub_jobs:
        return False
    placed = counts[st.RUNNING] + counts[st.BOUND] + counts[st.SUCCEEDED]
    if not job.tasks or placed + counts[st.FAILED] != len(job.tasks) or placed < job.min_available or job.gated:
        return False
    if not all((job.allocated.scalars or {}).values()):
        return False
    if group.status.phase == "Completed":
        return True
    return group.status.phase == "Running" and _holds_minimum(job)


def _holds_minimum(job: Job) -> bool:
    held, minimum = job.allocated, job.min_resources
    if minimum is None:
        return True
    return all(held[n] >= minimum[n] and (n in (CPU, MEMORY) or n in held) for n in minimum.keys())
