"""Nominations: capacity that was freed for a pod is kept for it until it is used (deviation kept-nominations).

The pod is nominated to the node (`status.nominatedNodeName`) and placed there in a later cycle, when the victims have
terminated. Until then the capacity is held at the start of every allocate, so that no other pod uses it. When the job
is tried, its reservations are released and it is placed like any other job. Reservations for pods of profiles last for
the whole action.
"""

from __future__ import annotations

from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.task import Task


class Reservations:
    """Capacity that is held for pending tasks, by job. Only the nodes' columns count it; plugins do not."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._held: dict[str, list[tuple[Task, int]]] = {}
        if not session.deviations.kept_nominations:
            return
        for key in sorted(session.cluster.nominations.node_of):
            task = session.cluster.tasks.get(key)
            if task is not None and session.status(task) == st.PENDING and self._may(task):
                node = session.nominated_node(task)
                if node is not None and (not task.job or session.placement.accepted(task)[node]):
                    session.moves.hold(task, node)
                    self._held.setdefault(task.job, []).append((task, node))

    def _may(self, task: Task) -> bool:
        if not task.job:
            return True  # a profile has evicted pods for it
        session = self._session
        job = session.jobs.get(task.job)
        if job is None or job.is_pending() or session.states.job_valid(job) is not None:
            return False
        # A queue whose limit was lowered meanwhile could not use what is held for its pod.
        queue = session.queues.get(job.queue)
        return queue is not None and session.limits.simulate_allocatable(queue, task)

    def dissolve(self, job: SessionJob) -> None:
        """Release what is held for a job, before the job is tried."""
        self._dissolve(job.uid)

    def dissolve_all(self) -> None:
        """Release what is still held."""
        for uid in list(self._held):
            self._dissolve(uid)

    def _dissolve(self, uid: str) -> None:
        for task, node in reversed(self._held.pop(uid, ())):
            self._session.moves.release(task, node)
