"""priority: the more important first, and the less important make room. Volcano: plugin priority."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.session_job import SessionJob
from volcano_py.scheduler.framework.votes import PERMIT, EvictionContext
from volcano_py.scheduler.model import status as st
from volcano_py.scheduler.model.task import Task


class Priority:
    """No arguments."""

    name = "priority"

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        pass

    def on_session_open(self, session: Session) -> None:
        jobs = session.jobs

        def preemptable(preemptor: Task, candidates: list[Task]) -> tuple[list[Task], int]:
            mine = jobs.get(preemptor.job)
            if mine is None:
                return [], PERMIT
            victims = []
            for t in candidates:
                theirs = jobs.get(t.job)
                if theirs is None:
                    continue
                if theirs is mine:
                    lower = t.priority < preemptor.priority
                else:
                    lower = theirs.priority < mine.priority
                if lower:
                    victims.append(t)
            return victims, PERMIT

        def outranked(preemptor: Task, victims: list[Task]) -> list[Task]:
            """Without those of more important jobs, whichever tier named them."""
            mine = jobs.get(preemptor.job)
            return [v for v in victims if mine is None or v.job not in jobs or jobs[v.job].priority <= mine.priority]

        def unified_evictable(context: EvictionContext, candidates: list[Task]) -> tuple[list[Task], int]:
            if context.kind == "gangreclaim":
                return candidates, PERMIT
            return [t for t in candidates if t.job in jobs and jobs[t.job].priority < context.job.priority], PERMIT

        def starving(job: SessionJob) -> bool:
            return job.ready_num + job.counts[st.PIPELINED] < len(job.tasks)

        votes = session.votes
        votes.add("task_order", self.name, lambda t: -t.priority)
        votes.add("job_order", self.name, lambda j: -j.priority)
        votes.add("sub_job_order", self.name, lambda s: -s.priority)
        votes.add("preemptable", self.name, preemptable)
        if session.deviations.rank_holds:
            votes.add("outranked", self.name, outranked)
        votes.add("unified_evictable", self.name, unified_evictable)
        votes.add("job_starving", self.name, starving)
