"""The tasks of one gang while they are placed: which are left out, which node each gets, and why one gets none.
Volcano: the body of the loop of allocateResourcesForTasks, PredicateNodes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.actions.allocate_arguments import settings
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.jobs.sub_job import SubJob
from volcano_py.scheduler.framework.network.topology import ROOT
from volcano_py.scheduler.framework.placement import Placement
from volcano_py.scheduler.framework.search.fit_error_counts import count_fit_errors
from volcano_py.scheduler.framework.search.fit_errors import FitErrors
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.queue import Queue


class GangTasks:
    """The tasks of one gang (or sub-job) while they are placed. `outside`: the nodes outside of its domain."""

    def __init__(
        self,
        session: Session,
        queue: Queue,
        job: SessionJob,
        sub: SubJob | None,
        hyper_node: str,
        outside: NDArray[np.bool_] | None,
    ) -> None:
        self._session = session
        self._queue = queue
        self._job = job
        self._sub = sub
        self._hyper_node = hyper_node
        self._outside = outside
        self._error_cache = not session.deviations.own_verdict and settings(session).error_cache
        self._rejected: dict[str, _RejectedByRole] = {}
        """By role (only without own-verdict)."""

    @property
    def in_runs(self) -> bool:
        """Whether equal tasks can be placed as one operation."""
        alone = self._sub is None and not self._job.sub_jobs and self._outside is None
        return alone and self._session.deviations.own_verdict

    def leaves_out(self, task: Task) -> bool:
        """Whether no node is searched for a task: its queue may not, it has a gate, or its role has no node."""
        session, job = self._session, self._job
        if not session.limits.allocatable(self._queue, task):
            if session.deviations.explain_queue_limits:
                job.job_fit_errors = _queue_limit(session, self._queue)
            return True
        if task.sched_gated:
            if task.only_queue_gate and task.needs_queue_admission:
                session.moves.remove_queue_gate(task)
            return True
        if (self._sub or job).task_has_fit_errors(task):
            job.record_fit_errors(task, _like_its_role(session, job, task))
            return True
        return False

    def node_for(self, task: Task) -> int | None:
        """The node for a task; None, with the reasons recorded, if there is none."""
        session, job = self._session, self._job
        error = session.rules.pre_predicate(task)
        if error is not None:
            count = len(session.table)
            job.record_fit_errors(task, FitErrors({error: count}, count))
            return None
        if self._error_cache and task.role and task.role not in self._rejected:
            self._rejected[task.role] = _RejectedByRole(self._outside, len(session.table))
        of_role = self._rejected.get(task.role)
        without = self._outside if of_role is None else of_role.nodes
        node = _nominated(session, task, without)
        if node is None:
            node = session.placement.best(task, without=without)
            if of_role is not None:
                of_role.add(session.placement, task)
        if node is None:
            hyper_node = self._hyper_node
            errors = _fit_errors(session, task, hyper_node) if of_role is None else of_role.errors(hyper_node)
            job.record_fit_errors(task, errors)
        return node


def extend_domain(session: Session, sub: SubJob | None, node: int) -> None:
    """A task was placed: the domain of a sub-job with a constraint includes its node."""
    topology = session.topology
    if sub is not None and sub.constraint is not None and topology.leaf(node):
        sub.current_hyper_node = topology.lowest_common(topology.leaf(node), sub.current_hyper_node)


class _RejectedByRole:
    """The nodes that rejected a pod of one role, and their reasons. These nodes are not tried for the next pod of the
    role, which gets the same reasons. Volcano: the error cache of PredicateNodes."""

    def __init__(self, outside: NDArray[np.bool_] | None, count: int) -> None:
        self.nodes = np.zeros(count, dtype=bool) if outside is None else outside.copy()
        """The excluded nodes."""
        self._reasons: dict[str, int] = {}
        self._unresolvable = np.zeros(count, dtype=bool)
        self._count = 0

    def add(self, placement: Placement, task: Task) -> None:
        """Add the reasons of the nodes that were not excluded before."""
        now = ~placement.accepted(task) & ~self.nodes
        if not now.any():
            return
        found = count_fit_errors(placement, task, True, np.flatnonzero(now))
        for reason, count in found.counts.items():
            self._reasons[reason] = self._reasons.get(reason, 0) + count
        if found.unresolvable is not None:
            self._unresolvable |= found.unresolvable
        self._count += found.nodes
        self.nodes |= now

    def errors(self, hyper_node: str) -> FitErrors:
        """The fit errors of the next pod of the role."""
        unresolvable = self._unresolvable.copy() if self._unresolvable.any() else None
        errors = FitErrors(dict(self._reasons), self._count, unresolvable)
        errors.hyper_node = "" if hyper_node == ROOT else hyper_node
        return errors


def _fit_errors(session: Session, task: Task, hyper_node: str) -> FitErrors:
    if hyper_node == ROOT:
        return session.placement.fit_errors(task)
    return session.placement.fit_errors_within(task, hyper_node, session.topology.columns(hyper_node))


def _like_its_role(session: Session, job: SessionJob, task: Task) -> FitErrors:
    """The fit errors of a pod that is not tried: those of the first pod of its role."""
    tried = job.role_errors.get(task.role)
    if tried is not None and session.deviations.quiet_events:
        return tried
    return FitErrors(error=f"Task {task.name} with role spec {task.role} has already predicated failed, skip")


def _queue_limit(session: Session, queue: Queue) -> str:
    if queue.name in session.unusable_queues:
        return session.unusable_queues[queue.name]
    if queue.state != "Open":
        return f"queue {queue.name} is {queue.state or 'not opened yet'}; a queue must be Open to get pods"
    return f"queue {queue.name} would exceed its share or capability"


def _nominated(session: Session, task: Task, without: NDArray[np.bool_] | None) -> int | None:
    """The node on which pods were evicted for the task, if it still fits the task and is not excluded."""
    node = session.nominated_node(task)
    if node is None or (without is not None and without[node]) or not session.placement.fits_soon(task, node):
        return None
    return node if session.placement.accepted(task)[node] else None
