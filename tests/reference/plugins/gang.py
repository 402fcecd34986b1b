"""gang: a job runs with all of its minimum, or not at all."""

from __future__ import annotations

from typing import Any

from tests.reference.job import Job
from tests.reference.messages import report_ready, report_unschedulable
from tests.reference.session import Session
from tests.reference.sub_job import SubJob
from tests.reference.task import Task
from tests.reference.votes import PERMIT, REJECT


def gang(session: Session, arguments: dict[str, Any]) -> None:
    def valid(job: Job) -> bool:
        return job.check_task_valid() and job.check_sub_job_valid() and job.valid_task_num() >= job.min_available

    def jobs_not_ready_first(left: Job | SubJob, right: Job | SubJob) -> int:
        a, b = left.is_ready(), right.is_ready()
        if a == b:
            return 0
        return 1 if a else -1

    def ready(job: Job) -> bool:
        return job.check_task_ready() and job.check_sub_job_ready() and job.is_ready()

    def pipelined(job: Job) -> int:
        enough = job.check_task_pipelined() and job.check_sub_job_pipelined() and job.is_pipelined()
        return PERMIT if enough else REJECT

    def sub_job_pipelined(job: Job, sub: SubJob) -> int:
        return PERMIT if sub.is_pipelined() else REJECT

    def surplus(evictor: Task, candidates: list[Task]) -> tuple[list[Task], int]:
        left: dict[str, int] = {}
        victims = []
        for c in candidates:
            job = session.jobs[c.job]
            left.setdefault(job.uid, job.ready_task_num())
            if left[job.uid] > job.min_available:
                left[job.uid] -= 1
                victims.append(c)
        return victims, PERMIT

    def close() -> None:
        for job in session.jobs.values():
            if job.tasks and job.is_ready():
                report_ready(job)
            elif job.tasks and not _only_leaving(job):
                job.unschedulable = True
                report_unschedulable(job)

    votes = session.votes
    votes.register("JobValid", "gang", valid)
    votes.register("JobOrder", "gang", jobs_not_ready_first)
    votes.register("SubJobOrder", "gang", jobs_not_ready_first)
    votes.register("SubJobReady", "gang", lambda job, sub: sub.is_ready())
    votes.register("SubJobPipelined", "gang", sub_job_pipelined)
    votes.register("JobReady", "gang", ready)
    votes.register("JobPipelined", "gang", pipelined)
    votes.register("JobStarving", "gang", Job.is_starving)
    votes.register("Preemptable", "gang", surplus)
    votes.register("Reclaimable", "gang", surplus)
    votes.register("UnifiedEvictable", "gang", lambda eviction, candidates: (candidates, PERMIT))
    session.closers.append(close)


def _only_leaving(job: Job) -> bool:
    """Whether members terminate and none is pending: the job is not reported as unschedulable."""
    leaving = [t for t in job.with_status("Releasing") if t.node]
    scheduled = job.with_status("Running", "Bound", "Failed", "Succeeded")
    waiting = job.with_status("Pending", "Pipelined")
    return bool(leaving) and not waiting and len(scheduled) + len(leaving) >= job.min_available
