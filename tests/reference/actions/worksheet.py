"""The tasks of a job that are not placed yet, by sub-job. Volcano: organizeJobWorksheet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from tests.reference.heap import Heap
from tests.reference.job import Job
from tests.reference.session import Session
from tests.reference.sub_job import SubJob
from tests.reference.task import Task


class Worksheet:
    def __init__(self, session: Session, job: Job, wanted: Callable[[Task], bool]) -> None:
        votes = session.votes
        satisfied: Counter[str] = Counter()
        not_ready = []
        for sub in job.sub_jobs.values():
            if votes.sub_job_ready(job, sub):
                satisfied[sub.gid] += 1
            else:
                not_ready.append(sub)
        required = set()
        in_order = Heap(votes.sub_job_less, not_ready)
        while in_order:
            sub = in_order.pop()
            if satisfied[sub.gid] < job.min_sub_jobs.get(sub.gid, 0):
                required.add(sub.uid)
                satisfied[sub.gid] += 1

        def less(left: SubJob, right: SubJob) -> bool:
            if (left.uid in required) != (right.uid in required):
                return left.uid in required
            return votes.sub_job_less(left, right)

        self.sub_jobs: Heap[SubJob] = Heap(less)
        self.tasks: dict[str, Heap[Task]] = {}
        for sub in job.sub_jobs.values():
            waiting = [t for t in sub.with_status("Pending") if wanted(t)]
            if waiting:
                self.tasks[sub.uid] = Heap(votes.task_less, waiting)
                self.sub_jobs.push(sub)

    def __bool__(self) -> bool:
        return bool(self.sub_jobs)

    def clone(self) -> Worksheet:
        copy = object.__new__(Worksheet)
        copy.sub_jobs = self.sub_jobs.clone()
        copy.tasks = {uid: tasks.clone() for uid, tasks in self.tasks.items()}
        return copy

    def become(self, other: Worksheet) -> None:
        self.sub_jobs, self.tasks = other.sub_jobs, other.tasks
