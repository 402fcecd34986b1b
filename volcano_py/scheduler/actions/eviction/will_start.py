"""Whether a job can start with what is pipelined for it. Volcano: JobPipelined before a statement is committed."""

from __future__ import annotations

from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs import status as st


def will_start(session: Session, job: SessionJob) -> bool:
    """Whether the pipelined tasks let the job start.

    A plugin may count a job as pipelined before it has its minimum (sla, when the job has waited for too long). If a
    plugin holds gangs back until they are ready, evictions for such a job would have no effect.
    """
    if not session.states.job_pipelined(job):
        return False
    if not session.deviations.sure_evictions or not session.callbacks.enabled("job_ready"):
        return True
    growing = (sub for sub in job.sub_jobs.values() if sub.counts[st.PIPELINED]) if job.has_policies else ()
    whole = all(sub.is_pipelined() for sub in growing)
    return whole and job.is_pipelined() and job.check_task_pipelined(session.statuses)
