"""drf: dominant resource fairness among jobs, and with hierarchy among queues. Volcano: plugin drf.

A job's share is its largest part of any resource of the cluster. The shares of all jobs are kept between
sessions (`build`, `apply`); a session copies the shares that it changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from volcano_py.scheduler.framework.incremental_state import state_of
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.plugin import Plugin
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.counted_resources import CountedResources, share_of
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.queue import Queue
from volcano_py.scheduler.model.resource import Resource
from volcano_py.scheduler.plugins.drf.fair_tree import FairTree

_DELTA = 1e-6
Shares = dict[str, float]


@dataclass
class ReportedShares:
    """The shares object for which all jobs were reported; a change of the cluster's capacity creates a new one."""

    of: Shares | None = None


class SessionShares:
    """The dominant shares of jobs in one session, and the victims that follow from them."""

    def __init__(self, session: Session, name: str) -> None:
        self._session = session
        self._whole = CountedResources.of(session.total)
        check = session.cluster.check_states
        self.kept = state_of(session.cluster, name, self._whole, self._build, self._apply, check)
        """The shares when the session opened."""
        self.now: Shares = {}
        """Those that the session has changed."""
        self._moved: dict[str, Resource] = {}
        """What the jobs hold that this session has changed."""

    def _build(self, model: Cluster) -> Shares:
        return {uid: share_of(job.allocated, self._whole) for uid, job in model.jobs.items()}

    def _apply(self, kept: Shares, model: Cluster, changed: set[str]) -> None:
        for uid in changed:
            job = model.jobs.get(uid)
            if job is None:
                kept.pop(uid, None)
            else:
                kept[uid] = share_of(job.allocated, self._whole)

    def _allocated(self, uid: str) -> Resource:
        """What a job holds now; the session changes it."""
        held = self._moved.get(uid)
        if held is None:
            held = self._moved[uid] = self._session.jobs[uid].model.allocated.clone()
        return held

    def gets(self, uid: str, amount: Resource) -> None:
        if uid in self._moved or uid in self._session.jobs:
            self.now[uid] = share_of(self._allocated(uid).add(amount), self._whole)

    def loses(self, task: Task) -> None:
        if task.job in self._session.jobs:
            self.now[task.job] = share_of(self._allocated(task.job).sub_unchecked(task.request), self._whole)

    # ---- victims -----------------------------------------------------------------------------------------

    def preemptable(self, preemptor: Task, candidates: list[Task]) -> list[Task]:
        jobs = self._session.jobs
        if preemptor.job not in jobs:
            return []
        mine = share_of(self._allocated(preemptor.job), self._whole, preemptor.request)
        left: dict[str, Resource] = {}
        victims = []
        for t in candidates:
            if t.job not in jobs:
                continue
            if t.job not in left:
                left[t.job] = self._allocated(t.job).clone()
            theirs = share_of(left[t.job].sub_unchecked(t.request), self._whole)
            if mine < theirs or abs(mine - theirs) <= _DELTA:
                victims.append(t)
        return self._held_by_more(preemptor, victims) if self._session.deviations.rank_holds else victims

    def _held_by_more(self, preemptor: Task, victims: list[Task]) -> list[Task]:
        """The victims whose jobs, including them, hold more than the preemptor's job does now.

        A task may add nothing to its job's share; two jobs with equal shares would then preempt each other in turn.
        """
        mine = share_of(self._allocated(preemptor.job), self._whole)
        left: dict[str, Resource] = {}
        for t in victims:
            left.setdefault(t.job, self._allocated(t.job).clone()).sub_unchecked(t.request)
        return [t for t in victims if share_of(left[t.job], self._whole, t.request) > mine + _DELTA]


class Drf(Plugin):
    """No arguments."""

    name = "drf"

    def on_session_open(self, session: Session) -> None:
        shares = SessionShares(session, self.name)
        kept, now = self._shares, self._now = shares.kept, shares.now
        if session.enabled(self.name, "enableHierarchy"):
            _hierarchy(session)
        session.add_job_order(lambda job: now.get(job.uid, kept.get(job.uid, 0.0)), own=True)
        session.add_preemptable(shares.preemptable)
        session.add_event_handler(
            lambda task, _: shares.gets(task.job, task.request),
            lambda task, _: shares.loses(task),
            allocate_run=lambda tasks, _: shares.gets(tasks[0].job, tasks[0].request.times(len(tasks))),
        )

    def on_session_close(self, session: Session) -> None:
        """Report the shares that have changed."""
        kept = session.cluster.keep(ReportedShares)
        jobs: Iterable[SessionJob] = session.jobs.touched()
        if kept.of is not self._shares:
            kept.of, jobs = self._shares, session.jobs.values()
        for job in jobs:
            value = self._now.get(job.uid, self._shares.get(job.uid, 0.0))
            session.job_gauges.append(("job_share", job.namespace, job.name, value))


def _hierarchy(session: Session) -> None:
    """Order queues, and reclaim between them, by their position in the tree."""
    tree = FairTree(session.total)
    for job in session.jobs.values():
        tree.add_job(job.uid, session.queues[job.queue], job.allocated, job.model.total_request)
    tree.refresh()

    def moved(task: Task, sign: int) -> None:
        job = session.jobs.get(task.job)
        if job is not None:
            tree.move(job.uid, job.queue, task.request, sign)
            tree.refresh()

    def order(left: Queue, right: Queue) -> int:
        difference = tree.compare(left, right)
        return (difference > 0) - (difference < 0)

    def reclaimable(reclaimer: Task, candidates: list[Task]) -> list[Task]:
        mine = session.jobs.get(reclaimer.job)
        if mine is None:
            return []
        moved(reclaimer, +1)
        victims = []
        for t in candidates:
            job = session.jobs.get(t.job)
            if job is None:
                continue
            moved(t, -1)
            if tree.compare(session.queues[mine.queue], session.queues[job.queue]) < 0:
                victims.append(t)
            moved(t, +1)
        moved(reclaimer, -1)
        return victims

    session.add_queue_order(order)
    session.add_reclaimable(reclaimable)
    session.add_event_handler(lambda t, _: moved(t, +1), lambda t, _: moved(t, -1))
