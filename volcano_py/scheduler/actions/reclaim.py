"""reclaim: evict pods of queues that hold more than their share. Volcano: action reclaim."""

from __future__ import annotations

import numpy as np

from volcano_py.scheduler.actions.eviction.commit_evictions import commit_evictions
from volcano_py.scheduler.actions.eviction.placed_tasks import PermittedVictims, PlacedTasks
from volcano_py.scheduler.actions.eviction.reclaiming import entitled_gangs, of_other_queues, reclaims_for_entitled
from volcano_py.scheduler.actions.eviction.starving import starving_by_queue
from volcano_py.scheduler.actions.eviction.victims.free_capacity import free_capacity_for
from volcano_py.scheduler.actions.eviction.victims.sufficient_victims import sufficient_victims
from volcano_py.scheduler.actions.placing.task_queue import TaskQueue, task_queue
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.plugin import Action
from volcano_py.scheduler.framework.search.node_rank import by_name
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.statement import Statement
from volcano_py.scheduler.model.jobs.task import Task


class Reclaim(Action):
    """Evict pods of other, reclaimable queues for starving jobs."""

    name = "reclaim"

    def execute(self, session: Session) -> None:
        if reclaims_for_entitled(session):
            _serve_entitled(session)
        else:
            _reclaim_as_volcano(session)


def _serve_entitled(session: Session) -> None:
    """Evict units for gangs that their queues are entitled to, in the order of queues and jobs."""
    gangs = entitled_gangs(session)
    queues, starving = starving_by_queue(session)
    while queues:
        waiting = starving[queues.pop().name]
        while waiting:
            gangs.serve(waiting.pop())


def _reclaim_as_volcano(session: Session) -> None:
    """Task by task, evict pods that the plugins name; whole gangs are no victims."""
    queues, starving = starving_by_queue(session)
    tasks = {job.uid: _ungated(session, job) for waiting in starving.values() for job in waiting}
    while queues:
        queue = queues.pop()
        if session.limits.overused(queue):
            continue
        waiting = starving[queue.name]
        while waiting:
            job = waiting.pop()
            statement = Statement(session, job.uid)
            todo = tasks[job.uid]
            permitted = of_other_queues(session, job)
            while todo and session.states.job_starving(job):
                task = todo.pop()
                if task.pod.spec.preemption_policy == "Never":
                    continue
                if not session.limits.preemptive(queue, [task]) or session.rules.pre_predicate(task) is not None:
                    continue
                _reclaim_for(session, statement, task, permitted)
            commit_evictions(session, statement, job, "reclaim")


def _ungated(session: Session, job: SessionJob) -> TaskQueue:
    return task_queue(session.orders, (t for t in session.pending(job) if not t.sched_gated))


def _reclaim_for(session: Session, statement: Statement, task: Task, permitted: PermittedVictims) -> None:
    placement = session.placement
    mask = placement.resolvable(task)
    errors = session.jobs[task.job].fit_errors.get(task.key)
    if errors is not None and errors.unresolvable is not None:
        mask = mask & ~errors.unresolvable
    job = session.jobs[task.job]
    queue = session.queues[job.queue]
    sure = session.deviations.sure_evictions

    def victims(node: int) -> list[Task] | None:
        candidates = permitted.on_node(session, node)
        return sufficient_victims(session, task, node, candidates, session.victims.reclaimable) if candidates else None

    def fits(node: int) -> bool:
        if not session.fits_without(task, node, ()):
            return False
        return not sure or (placement.accepts(task, node) and session.limits.allocatable(queue, task))

    placed = session.shared(PlacedTasks, lambda: PlacedTasks(session))
    mask = mask & placed.freeable(task, permitted)
    in_order = by_name(session.cluster)
    nodes = in_order[mask[in_order]]
    if placement.shard is not None:
        nodes = nodes[np.argsort(~placement.shard[nodes], kind="stable")]
    free_capacity_for(session, statement, task, map(int, nodes), victims, fits, "reclaim")
