"""Reservations: room that was freed for somebody is his until he has used it (deviation kept-nominations).

Who evicts is promised the place (`status.nominatedNodeName`), and gets it in a later cycle, when the evicted are gone.
Until then the room is held at the start of every allocate, so that neither the evicted nor anybody else takes it; when
the job's turn comes, its reservations are dissolved and it is placed as any other.
"""

from __future__ import annotations

from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.session_job import SessionJob
from volcano_py.scheduler.model import status as st
from volcano_py.scheduler.model.task import Task


class Reservations:
    """Room that is held for waiting tasks, by job. Only the nodes' numbers know of it, plugins do not."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._held: dict[str, list[tuple[Task, int]]] = {}
        if not session.deviations.kept_nominations:
            return
        for key in sorted(session.cluster.nominations.node_of):
            task = session.cluster.tasks.get(key)
            if task is not None and session.status(task) == st.PENDING and self._may(task):
                node = session.nominated_node(task)
                if node is not None and session.placement.accepted(task)[node]:
                    session.hold(task, node)
                    self._held.setdefault(task.job, []).append((task, node))

    def _may(self, task: Task) -> bool:
        job = self._session.jobs.get(task.job)
        return job is not None and not job.is_pending() and self._session.job_valid(job) is None

    def dissolve(self, job: SessionJob) -> None:
        """The job's turn has come: the room is as free as any."""
        for task, node in reversed(self._held.pop(job.uid, ())):
            self._session.release(task, node)

    def dissolve_all(self) -> None:
        """Everybody had his turn."""
        for uid in list(self._held):
            self.dissolve(self._session.jobs[uid])
