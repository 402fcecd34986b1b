"""priority: higher priority first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.reference.job import Job
from tests.reference.session import Session
from tests.reference.sub_job import SubJob
from tests.reference.task import Task
from tests.reference.votes import PERMIT

if TYPE_CHECKING:
    from tests.reference.actions.gangs import Eviction


def priority(session: Session, arguments: dict[str, Any]) -> None:
    def higher_first(left: Job | SubJob | Task, right: Job | SubJob | Task) -> int:
        if left.priority == right.priority:
            return 0
        return -1 if left.priority > right.priority else 1

    def lower(preemptor: Task, candidates: list[Task]) -> tuple[list[Task] | None, int]:
        mine = session.jobs.get(preemptor.job)
        if mine is None:
            return None, PERMIT
        victims = []
        for c in candidates:
            if c.job != mine.uid and session.jobs[c.job].priority < mine.priority:
                victims.append(c)
            if c.job == mine.uid and c.priority < preemptor.priority:
                victims.append(c)
        return victims, PERMIT

    def lower_jobs(eviction: Eviction, candidates: list[Task]) -> tuple[list[Task], int]:
        if eviction.kind == "gangreclaim":
            return candidates, PERMIT
        return [c for c in candidates if session.jobs[c.job].priority < eviction.job.priority], PERMIT

    def starving(job: Job) -> bool:
        return job.ready_task_num() + len(job.with_status("Pipelined")) < len(job.tasks)

    session.votes.register("Preemptable", "priority", lower)
    session.votes.register("UnifiedEvictable", "priority", lower_jobs)
    session.votes.register("JobStarving", "priority", starving)
    session.votes.register("JobOrder", "priority", higher_first)
    session.votes.register("SubJobOrder", "priority", higher_first)
    session.votes.register("TaskOrder", "priority", higher_first)
