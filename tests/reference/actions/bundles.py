"""The bundles of tasks that may be evicted for a gang in one domain: partial ones, and whole gangs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cmp_to_key
from math import inf

from tests.reference.job import Job
from tests.reference.resource import Resource
from tests.reference.task import Task


@dataclass
class Bundle:
    job: Job
    tasks: list[Task]
    whole: bool

    def local(self) -> Resource:
        return total(self.tasks)

    def gain(self, need: Resource) -> float:
        """The part of the request that it covers, divided by the part that its job loses."""
        lost = serves(total(list(self.job.tasks.values())), need, inf) if self.whole else 0.0
        return serves(self.local(), need, 1.0) / lost if lost > 0 else inf


def total(tasks: list[Task]) -> Resource:
    found = Resource()
    for task in tasks:
        found.add(task.resreq)
    return found


def serves(have: Resource, need: Resource, most: float) -> float:
    return sum(min(have.get(name) / need.get(name), most) for name in need.names())


def bundles_of(job: Job, local: list[Task]) -> list[Bundle]:
    """Volcano: CreateJobBundles."""
    in_order = sorted(local, key=lambda t: (t.priority, t.uid))
    spare = job.ready_task_num() - job.min_available
    if spare < 0:
        return [Bundle(job, in_order, whole=False)]
    roles = Counter(t.role for t in job.allocated_roles())
    ready = {sub.uid for sub in job.sub_jobs.values() if sub.is_ready()}
    groups = Counter(sub.gid for sub in job.sub_jobs.values() if sub.uid in ready)
    roles_matter = job.min_available >= job.task_min_available_total()
    safe, rest = [], []
    for task in in_order:
        sub = job.sub_job_of(task)
        least = job.task_min_available.get(task.role)
        ok = spare > 0
        if roles_matter and least is not None and roles[task.role] <= least:
            ok = False
        if job.min_sub_jobs and sub.uid in ready and groups[sub.gid] <= job.min_sub_jobs.get(sub.gid, 0):
            ok = False
        if not ok:
            rest.append(task)
            continue
        safe.append(task)
        spare -= 1
        roles[task.role] -= 1
        if sub.uid in ready:
            ready.discard(sub.uid)
            groups[sub.gid] -= 1
    found = []
    if safe:
        found.append(Bundle(job, safe, whole=False))
    if rest:
        found.append(Bundle(job, rest, whole=True))
    return found


def in_order(bundles: list[Bundle], need: Resource, before: Callable[[Job, Job], bool]) -> list[Bundle]:
    """`before`: whose job comes first; if it returns true for both, neither does."""

    def compare(a: Bundle, b: Bundle) -> int:
        if a.whole != b.whole:
            return 1 if a.whole else -1
        forth, back = before(a.job, b.job), before(b.job, a.job)
        if forth != back:
            return -1 if forth else 1
        if a.gain(need) != b.gain(need):
            return -1 if a.gain(need) > b.gain(need) else 1
        x, y = ((c.job.uid, c.tasks[0].uid, len(c.tasks)) for c in (a, b))
        return (x > y) - (x < y)

    return sorted(bundles, key=cmp_to_key(compare))


def only_allowed(bundles: list[Bundle], allowed: set[str]) -> list[Bundle]:
    """Remove protected tasks; a whole gang only remains if all of it may be evicted."""
    found = []
    for bundle in bundles:
        tasks = [t for t in bundle.tasks if t.uid in allowed]
        if tasks and (not bundle.whole or len(tasks) == len(bundle.tasks)):
            found.append(Bundle(bundle.job, tasks, bundle.whole))
    return found
