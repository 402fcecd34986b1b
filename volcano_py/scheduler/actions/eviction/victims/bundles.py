"""Bundles: which tasks of a job can be evicted together, and in which order. Volcano: actions/utils/bundle.go.

A job's tasks in a domain form two bundles: those above its minimum, and the rest, which is evicted as a whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cmp_to_key
from typing import NamedTuple

from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.jobs.sub_job import SubJob
from volcano_py.scheduler.framework.jobs.tree_surplus import TreeSurplus
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.resource import ZERO, Resource


class Bundle(NamedTuple):
    """Tasks of one job. `whole`: their eviction ends the whole gang, and `lost` is all that it requests."""

    job: SessionJob
    tasks: list[Task]
    whole: bool
    local: Resource
    lost: Resource


def requests(tasks: Iterable[Task]) -> Resource:
    """The sum of the requests of tasks."""
    total = Resource()
    for task in tasks:
        total.add(task.request)
    return total


def bundles_of(
    job: SessionJob,
    tasks: Iterable[Task],
    statuses: bytearray,
    *,
    exact: bool = False,
) -> list[Bundle]:
    """The bundles of a job's tasks, the less important tasks first. `exact`: see `Surplus`."""
    surplus = Surplus(job, statuses, exact)
    safe: list[Task] = []
    rest: list[Task] = []
    for task in sorted(tasks, key=lambda t: (t.priority, t.uid)):
        (safe if surplus.take(task) else rest).append(task)
    found = []
    if safe:
        found.append(Bundle(job, safe, False, requests(safe), Resource()))
    if rest:
        found.append(Bundle(job, rest, True, requests(rest), requests(job.tasks.values())))
    return found


class Surplus:
    """The tasks above a job's minimums: of tasks, of each role, of each group of sub-jobs.

    `exact`: a sub-job breaks when it falls below its minimum, and only placed tasks count for a role. In Volcano a
    sub-job breaks with the first of its tasks, and pending best-effort tasks also count for a role.
    """

    def __init__(self, job: SessionJob, statuses: bytearray, exact: bool) -> None:
        self._job = job
        self._exact = exact
        self._left = job.ready_num - job.min_available
        self._tree = TreeSurplus(job, job.model.tree) if job.model.tree is not None else None
        self.broken = self._left < 0 or (self._tree is not None and self._tree.broken)
        """Whether the job is already below its minimum: then no minimum protects its tasks."""
        minimums = job.task_min_available if job.min_available >= job.task_min_total else {}
        roles = job.roles(statuses)
        self._roles = {
            role: sum(roles.get(role, [0] * 10)[s] for s in st.READY) - minimum
            for role, minimum in minimums.items()
            if minimum
        }
        if self._roles and not exact and job.pending_best_effort:
            for task in job.tasks.values():
                if task.best_effort and statuses[task.slot] == st.PENDING and task.role in self._roles:
                    self._roles[task.role] += 1
        self._over = {uid: self._beyond(sub) for uid, sub in job.sub_jobs.items()}
        self._groups = {
            gid: sum(s.is_ready() for s in job.sub_jobs.values() if s.gid == gid) - minimum
            for gid, minimum in job.min_sub_jobs.items()
        }

    def take(self, task: Task) -> bool:
        """Whether the task is above the minimum; if so, it is counted as evicted."""
        if self._job.model.evicted_whole:
            return False
        if self.broken:
            return True
        if self._tree is not None:
            return self._tree.take(task)
        if self._left <= 0 or self._roles.get(task.role, 1) <= 0:
            return False
        sub: SubJob | None = None
        if self._job.min_sub_jobs:
            sub = self._job.sub_job_of(task)
            if sub is None or not self._sub_job_has_surplus(sub):
                return False
        self._left -= 1
        if task.role in self._roles:
            self._roles[task.role] -= 1
        if sub is not None:
            self._over[sub.uid] -= 1
            if self._over[sub.uid] == -1 and sub.gid in self._groups:
                self._groups[sub.gid] -= 1
        return True

    def _beyond(self, sub: SubJob) -> int:
        """The number of tasks that a sub-job has above its minimum; negative if it is below."""
        if self._exact:
            return sub.ready_num - sub.min_available
        return 0 if sub.is_ready() else -1

    def _sub_job_has_surplus(self, sub: SubJob) -> bool:
        """Whether the sub-job has tasks above its minimum, is broken already, or is itself above a minimum."""
        return self._over[sub.uid] != 0 or self._groups.get(sub.gid, 1) > 0


def in_order(
    bundles: Iterable[Bundle], need: Resource, before: Callable[[SessionJob, SessionJob], bool]
) -> list[Bundle]:
    """Bundles above a minimum first; then in the order of `before`; then the bundle that serves the need most.

    A `before` that is true in both directions gives no order.
    """

    def compare(a: Bundle, b: Bundle) -> int:
        if a.whole != b.whole:
            return 1 if a.whole else -1
        first, second = before(a.job, b.job), before(b.job, a.job)
        if first != second:
            return -1 if first else 1
        x, y = (-use(b, need) for b in (a, b))
        if x != y:
            return -1 if x < y else 1
        p, q = ((b.job.uid, b.tasks[0].uid if b.tasks else "", len(b.tasks)) for b in (a, b))
        return (p > q) - (p < q)

    return sorted(bundles, key=cmp_to_key(compare))


def use(bundle: Bundle, need: Resource) -> float:
    """How much of the need a bundle serves, relative to what its gang loses of it; infinite if that is nothing."""
    cost = serves(bundle.lost, need, math.inf)
    return math.inf if cost == 0 else serves(bundle.local, need, 1.0) / cost


def serves(have: Resource, need: Resource, cap: float = 1.0) -> float:
    """How much of a need is available: the sum of the parts of all dimensions, each up to `cap`."""
    return sum(min(have[name] / need[name], cap) for name in need.keys() if need[name] > 0)


def only_allowed(bundles: Iterable[Bundle], allowed: Collection[str]) -> list[Bundle]:
    """The bundles if only these tasks (by UID) may be evicted: bundles above a minimum shrink, whole ones are
    dropped."""
    kept = []
    for bundle in bundles:
        tasks = [t for t in bundle.tasks if t.uid in allowed]
        if len(tasks) == len(bundle.tasks):
            kept.append(bundle)
        elif tasks and not bundle.whole:
            kept.append(bundle._replace(tasks=tasks, local=requests(tasks)))
    return kept


def enough(bundles: Iterable[Bundle], need: Resource, whole: bool) -> list[Bundle]:
    """The first bundles that serve the need together; `whole`: including bundles that are only evicted as a whole."""
    chosen: list[Bundle] = []
    freed = Resource()
    for bundle in bundles:
        if need.less_equal(freed, ZERO):
            break
        if whole or not bundle.whole:
            chosen.append(bundle)
            freed.add(bundle.local)
    return chosen


def flattened(bundles: Sequence[Bundle]) -> list[Task]:
    """The tasks of all bundles, each once: a completed bundle includes those of the same job above the minimum."""
    return list({task.uid: task for bundle in bundles for task in bundle.tasks}.values())


def completed(session: Session, bundle: Bundle) -> Bundle | None:
    """A whole bundle with the job's tasks on other nodes, so that no task of the gang is left; None if one of them must
    not be evicted."""
    members = [t for t in bundle.job.tasks.values() if session.status(t) in (st.BOUND, st.BINDING, st.RUNNING)]
    here = {t.uid for t in bundle.tasks}
    outside = [t for t in members if t.uid not in here]
    if not all(t.preemptable and session.status(t) != st.BINDING for t in outside):
        return None
    return bundle._replace(tasks=[*bundle.tasks, *sorted(outside, key=lambda t: (t.priority, t.uid))])
