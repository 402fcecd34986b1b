"""priority: higher priority first; lower priority can be preempted. Volcano: plugin priority."""

from __future__ import annotations

from volcano_py.scheduler.framework.extension_points.victims import Basis, EvictionContext
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.plugin import Plugin
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.task import Task


class Priority(Plugin):
    """No arguments."""

    name = "priority"

    def on_session_open(self, session: Session) -> None:
        jobs = session.jobs

        def preemptable(preemptor: Task, candidates: list[Task]) -> list[Task]:
            mine = jobs.get(preemptor.job)
            if mine is None:
                return []
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
            return victims

        def outranked(preemptor: Task, victims: list[Task]) -> list[Task]:
            """The victims, without those of jobs with a higher priority, whichever tier selected them."""
            mine = jobs.get(preemptor.job)
            if mine is None:
                return victims
            most = mine.priority
            theirs = ((v, jobs.get(v.job)) for v in victims)
            return [v for v, job in theirs if job is None or job.priority <= most]

        def unified_evictable(context: EvictionContext, candidates: list[Task]) -> list[Task]:
            if context.kind == "gangreclaim":
                return candidates
            return [t for t in candidates if t.job in jobs and jobs[t.job].priority < context.job.priority]

        def starving(job: SessionJob) -> bool:
            return job.ready_num + job.counts[st.PIPELINED] < len(job.tasks)

        session.add_task_order(lambda t: -t.priority)
        session.add_job_order(lambda j: -j.priority, own=True)
        session.add_sub_job_order(lambda s: -s.priority)
        session.add_preemptable(preemptable, basis=Basis.RANK)
        if session.deviations.rank_holds:
            session.add_outranked(outranked)
        session.add_unified_evictable(unified_evictable, basis=Basis.RANK)
        session.add_job_starving(starving)
