"""reclaim: evict pods of queues that hold more than their share. Volcano: action reclaim."""

from __future__ import annotations

from volcano_py.scheduler.actions.eviction.commit_evictions import commit_evictions
from volcano_py.scheduler.actions.eviction.free_capacity import free_capacity_for
from volcano_py.scheduler.actions.eviction.placed_tasks import Bools, PermittedVictims, PlacedTasks, Select
from volcano_py.scheduler.actions.eviction.starving import starving_by_queue
from volcano_py.scheduler.actions.eviction.sufficient_victims import sufficient_victims
from volcano_py.scheduler.actions.eviction.whole_gangs import WholeGangReclaim
from volcano_py.scheduler.actions.task_queue import task_queue
from volcano_py.scheduler.framework.node_rank import by_name
from volcano_py.scheduler.framework.plugin import Action
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.session_job import SessionJob
from volcano_py.scheduler.framework.statement import Statement
from volcano_py.scheduler.model import status as st
from volcano_py.scheduler.model.resource import ZERO
from volcano_py.scheduler.model.task import Task


class Reclaim(Action):
    """Evict pods of other, reclaimable queues for starving jobs."""

    name = "reclaim"

    def execute(self, session: Session) -> None:
        queues, starving = starving_by_queue(session)
        gangs = WholeGangReclaim(session, _may_evict) if session.deviations.whole_gang_reclaim else None
        tasks = {job.uid: _ungated(session, job) for waiting in starving.values() for job in waiting}
        while queues:
            queue = queues.pop()
            if session.overused(queue):
                continue
            waiting = starving[queue.name]
            while waiting:
                job = waiting.pop()
                statement = Statement(session, job.uid)
                todo = tasks[job.uid]
                while todo and session.job_starving(job):
                    task = todo.pop()
                    if task.pod.spec.preemption_policy == "Never":
                        continue
                    if not session.preemptive(queue, [task]) or session.pre_predicate(task) is not None:
                        continue
                    _reclaim_for(session, statement, task)
                starts = commit_evictions(session, statement, job, "reclaimable", "reclaim")
                if not starts and gangs is not None:
                    gangs.reclaim_for(job)


def _ungated(session: Session, job: SessionJob) -> list[Task]:
    return task_queue(session, (t for t in session.pending(job) if not t.sched_gated))


def _reclaim_for(session: Session, statement: Statement, task: Task) -> None:
    placement = session.placement
    mask = placement.resolvable(task)
    errors = session.jobs[task.job].fit_errors.get(task.key)
    if errors is not None and errors.unresolvable is not None:
        mask = mask & ~errors.unresolvable
    job = session.jobs[task.job]
    queue = session.queues[job.queue]
    sure = session.deviations.sure_evictions

    permitted = _of_other_queues(session, job)

    def victims(node: int) -> list[Task] | None:
        candidates = [v for v in session.on_node(node) if permitted.includes(v)]
        return sufficient_victims(session, task, node, candidates, session.reclaimable) if candidates else None

    def fits(node: int) -> bool:
        if not task.request.less_equal(session.future_idle(node), ZERO):
            return False
        return not sure or (placement.accepts(task, node) and session.allocatable(queue, task))

    placed = session.shared(PlacedTasks, lambda: PlacedTasks(session))
    mask = mask & placed.freeable(task, permitted)
    in_order = by_name(session.cluster)
    nodes: list[int] = in_order[mask[in_order]].tolist()
    shard = placement.shard
    if shard is not None:
        nodes.sort(key=lambda n: not shard[n])
    free_capacity_for(session, statement, task, nodes, victims, fits, "reclaim")


def _of_other_queues(session: Session, job: SessionJob) -> PermittedVictims:
    def among(placed: PlacedTasks, tasks: Select) -> Bools:
        return placed.evictable(tasks, (st.RUNNING,)) & ~placed.in_queue(tasks, job.queue)

    return PermittedVictims(lambda victim: _may_evict(session, job, victim), ("not in queue", job.queue), among)


def _may_evict(session: Session, job: SessionJob, victim: Task) -> bool:
    theirs = session.jobs.get(victim.job)
    return (
        theirs is not None
        and session.status(victim) == st.RUNNING
        and victim.preemptable
        and theirs.queue != job.queue
        and session.queues[theirs.queue].reclaimable
    )
