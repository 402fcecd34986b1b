"""preempt: evict less important pods for more important ones, within a queue. Volcano: action preempt.

First between jobs of a queue: a starving job evicts for as many of its tasks as it needs. The statement is committed if
the job is then pipelined, else no pod is evicted. Then within each job that was starving: one task for another task of
the same job.
"""

from __future__ import annotations

from msgspec import field

from volcano_py.scheduler.actions.eviction.back_off import backs_off
from volcano_py.scheduler.actions.eviction.commit_evictions import breaks_own_gang, commit_evictions, is_needless
from volcano_py.scheduler.actions.eviction.dry_run import best_candidate
from volcano_py.scheduler.actions.eviction.node_order import best_first
from volcano_py.scheduler.actions.eviction.placed_tasks import Bools, PermittedVictims, PlacedTasks
from volcano_py.scheduler.actions.eviction.victims.free_capacity import free_capacity_for
from volcano_py.scheduler.actions.eviction.victims.sufficient_victims import sufficient_victims
from volcano_py.scheduler.actions.placing.task_queue import TaskQueue, task_queue
from volcano_py.scheduler.framework.jobs.priority_queue import PriorityQueue
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.plugin import Action, ActionArguments
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.statement import Statement
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.queue import Queue

_COUNTED_BEFORE = ("InterPodAffinity", "PodTopologySpread")
"""Filters for which Volcano counts pods before the evictions and not again."""
_EVICTED_IN = (st.BOUND, st.RUNNING)
Rejected = dict[tuple[str, str], Bools]
"""By job and role: the nodes that rejected one of its pods in this action, with or without evictions."""


class PreemptArguments(ActionArguments):
    topology_aware: bool = field(default=False, name="enableTopologyAwarePreemption")
    """Try several nodes and use the one with the least important victims, instead of the first by score."""
    most_nodes: int = field(default=100, name="maxCandidateNodesAbsolute")
    """The search ends when this number of nodes can be made to fit."""
    least_nodes: int = field(default=1, name="minCandidateNodesAbsolute")
    percentage: int = field(default=10, name="minCandidateNodesPercentage")
    workers: int = field(default=16, name="topologyAwarePreemptWorkerNum")
    """These three are accepted for compatibility: all nodes are tried, one after another. Only if they select no node
    at all, none is tried (without the deviation fewest-victims)."""
    error_cache: bool = field(default=True, name="predicateErrorCacheEnable")
    """Without the deviation own-verdict: do not try a pod on a node that rejected another pod of its role."""

    def candidates(self, count: int) -> int:
        """The number of candidate nodes that Volcano searches before it selects one. `count`: all nodes."""
        return min(max(count * self.percentage // 100, self.least_nodes), self.most_nodes, count)


class Preempt(Action):
    """Evict pods of other jobs of the queue for starving jobs, then pods of the same job."""

    name = "preempt"
    Arguments = PreemptArguments
    arguments: PreemptArguments

    def execute(self, session: Session) -> None:
        queues: PriorityQueue[Queue] = PriorityQueue(session.orders.queue_before)
        starving: dict[str, PriorityQueue[SessionJob]] = {}
        tasks: dict[str, TaskQueue] = {}
        remembers = not session.deviations.own_verdict and self.arguments.error_cache
        rejected: Rejected | None = {} if remembers else None
        for job in session.jobs.active():
            if job.is_pending() or session.states.job_valid(job) is not None or not session.states.job_starving(job):
                continue
            if job.has_topology or backs_off(session, job):
                continue  # capacity on separate nodes does not help within one HyperNode: gangpreempt serves such jobs
            if job.queue not in starving:
                starving[job.queue] = PriorityQueue(session.orders.job_before)
                queues.push(session.queues[job.queue])
            starving[job.queue].push(job)
            tasks[job.uid] = task_queue(session.orders, (t for t in session.pending(job) if not t.sched_gated))
        in_order = {name: sorted(waiting, key=session.orders.job_key) for name, waiting in starving.items()}
        while queues:
            queue = queues.pop()
            waiting = starving[queue.name]
            under_request = in_order[queue.name]
            while waiting:
                job = waiting.pop()
                statement = Statement(session, job.uid)
                todo = tasks[job.uid]
                permitted: dict[bool, PermittedVictims] = {}
                while todo and session.states.job_starving(job):
                    task = todo.pop()
                    if task.best_effort not in permitted:
                        permitted[task.best_effort] = _of_other_jobs(session, queue, task)
                    others = permitted[task.best_effort]
                    preempt_for(session, self.arguments, statement, task, others, rejected)
                commit_evictions(session, statement, job, "preempt")
            for job in under_request:
                _within(session, self.arguments, job, rejected)


def _within(session: Session, arguments: PreemptArguments, job: SessionJob, rejected: Rejected | None) -> None:
    """Evict tasks of a job for other tasks of it; ends with the first task that fits no node even with evictions."""
    todo = task_queue(session.orders, (t for t in session.pending(job) if not t.sched_gated))
    while todo:
        task = todo.pop()
        statement = Statement(session, job.uid)
        helped = preempt_for(session, arguments, statement, task, _of_its_own_job(session, task), rejected)
        needless = is_needless(session, statement)
        if not helped or needless or breaks_own_gang(session, statement, job):
            statement.discard()
            return
        statement.commit()


def _evictable(session: Session, preemptor: Task, victim: Task) -> bool:
    return (
        session.statuses[victim.slot] in _EVICTED_IN
        and not (preemptor.best_effort and not victim.best_effort)
        and victim.preemptable
    )


def _of_other_jobs(session: Session, queue: Queue, preemptor: Task) -> PermittedVictims:
    in_queue: dict[str, bool] = {}

    def is_in_queue(uid: str) -> bool:
        job = session.jobs.get(uid)
        found = in_queue[uid] = job is not None and job.queue == queue.name and uid != preemptor.job
        return found

    statuses, only_best_effort = session.statuses, preemptor.best_effort

    def includes(victim: Task) -> bool:
        if statuses[victim.slot] not in _EVICTED_IN or not victim.preemptable:
            return False
        found = in_queue.get(victim.job)
        return (is_in_queue(victim.job) if found is None else found) and (victim.best_effort or not only_best_effort)

    def among(placed: PlacedTasks) -> Bools:
        found = placed.evictable() & placed.in_queue(queue.name)
        return found & placed.best_effort() if preemptor.best_effort else found

    return PermittedVictims(includes, ("in queue", queue.name, preemptor.best_effort), among, _EVICTED_IN)


def _of_its_own_job(session: Session, preemptor: Task) -> PermittedVictims:
    """Tasks of the same job. With rank-holds only those that are later in the order of tasks: other victims would be
    placed again before the preemptor."""
    mine = session.orders.task_key(preemptor) if session.deviations.rank_holds else None

    def includes(victim: Task) -> bool:
        if victim.job != preemptor.job or not _evictable(session, preemptor, victim):
            return False
        return mine is None or mine < session.orders.task_key(victim)

    def among(placed: PlacedTasks) -> Bools:
        return placed.evictable() & placed.of_job(preemptor.job)

    return PermittedVictims(includes, ("of job", preemptor.job), among, _EVICTED_IN)


def preempt_for(
    session: Session,
    arguments: PreemptArguments,
    statement: Statement,
    task: Task,
    permitted: PermittedVictims,
    rejected: Rejected | None = None,
) -> bool:
    """Find a node where evicting permitted pods frees capacity for a task; pipeline it there."""
    placement = session.placement
    if not may_preempt(session, task) or session.rules.pre_predicate(task) is not None:
        return False
    queue = session.queues[session.jobs[task.job].queue]
    if arguments.topology_aware:
        ordered = list(best_first(session, task, _candidates(session, task, rejected)))
        if arguments.candidates(len(ordered)) <= 0 and not session.deviations.fewest_victims:
            return False
        chosen = best_candidate(session, task, ordered, permitted.includes, arguments.most_nodes)
        if chosen is None:
            return False
        session.work.preemption_attempts += 1
        for victim in chosen.victims:
            statement.evict(victim, "preempt")
        return statement.pipeline(task, chosen.node, evicted=True) is None

    def select(task: Task, candidates: list[Task]) -> list[Task]:
        found = session.victims.preemptable(task, candidates)
        session.work.last_victims = len(found)
        return found

    def victims(node: int) -> list[Task] | None:
        session.work.preemption_attempts += 1
        candidates = permitted.on_node(session, node)
        return sufficient_victims(session, task, node, candidates, select)

    live = session.deviations.live_affinity_lists
    counted: dict[int, bool] = {}

    def fits(node: int) -> bool:
        if not live and node not in counted:  # the first time, before any pod on the node is evicted
            counted[node] = all(placement.accepts_by(task, node, rule) for rule in _COUNTED_BEFORE)
        if not session.limits.allocatable(queue, task) or not placement.fits_soon(task, node):
            return False
        if live:
            return placement.accepts(task, node)
        return counted[node] and placement.accepts_but(task, node, _COUNTED_BEFORE)

    placed = session.shared(PlacedTasks, lambda: PlacedTasks(session))
    nodes = best_first(session, task, _candidates(session, task, rejected), placed.freeable(task, permitted))
    return free_capacity_for(session, statement, task, nodes, victims, fits, "preempt")


def _candidates(session: Session, task: Task, rejected: Rejected | None) -> Bools:
    """The nodes that evictions could make fit."""
    mask = session.placement.resolvable(task)
    errors = session.jobs[task.job].fit_errors.get(task.key)
    hopeless = None if errors is None else errors.unresolvable
    if rejected is not None and task.role:
        before = rejected.get((task.job, task.role))
        now = ~mask if hopeless is None else ~mask & ~hopeless  # nodes that are hopeless already are left out
        rejected[task.job, task.role] = now if before is None else now | before
        if before is not None:
            mask = mask & ~before
    if hopeless is not None:
        mask = mask & ~hopeless
    return mask


def may_preempt(session: Session, task: Task) -> bool:
    """Whether a task may evict at all: its preemption policy, and what an earlier nomination still reserves."""
    pod = task.pod
    if pod.spec.preemption_policy == "Never":
        return False
    if not pod.status.nominated_node_name:
        return True
    if session.deviations.stale_nominations:
        # If the node had capacity, now or later, allocate would have used it: the nomination is void.
        return True
    nominated = pod.status.nominated_node_name
    node = session.table.index.get(nominated)
    if node is None:
        return False
    # Volcano calls the filters before the plugin has counted pods, unless another action caused the count.
    rejection = session.placement.rejected_by(task, node, session.rules.without_pre_predicate(task))
    if rejection is None:
        return False  # the task fits there without an eviction
    if rejection:
        return True  # evictions would not help there: other nodes are tried
    mine = pod.spec.priority or 0
    return not any(
        (v.pod.spec.priority or 0) < mine and v.pod.metadata.deletion_timestamp and _preempted(v)
        for v in session.cluster.on_node.get(nominated, {}).values()
    )


def _preempted(victim: Task) -> bool:
    return any(
        c.type == "DisruptionTarget" and c.status == "True" and c.reason == "PreemptionByScheduler"
        for c in victim.pod.status.conditions or ()
    )
