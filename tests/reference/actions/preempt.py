"""preempt: evicts less important pods for more important ones, within a queue, then within a job."""

from __future__ import annotations

from collections.abc import Callable

from tests.reference.actions.dry_run import best_candidate
from tests.reference.cluster import Queue
from tests.reference.conf import get_bool
from tests.reference.heap import Heap
from tests.reference.job import Job
from tests.reference.node import Node, NodeError
from tests.reference.placing import PredicateHelper, by_score, for_preemption, resolvable_nodes
from tests.reference.session import Session
from tests.reference.statement import Statement
from tests.reference.task import Task
from tests.reference.victims import are_enough, victims_queue
from tests.reference.votes import PredicateError

MayGo = Callable[[Task], bool]


def preempt(session: Session) -> None:
    Preempt(session).run()


class Preempt:
    """One execution of the action; all tasks share its error cache."""

    def __init__(self, session: Session) -> None:
        self.session = session
        arguments = session.conf.action_arguments("preempt")
        self.topology_aware = get_bool(arguments, "enableTopologyAwarePreemption", False)
        self.helper = PredicateHelper(session, get_bool(arguments, "predicateErrorCacheEnable", True))

    def run(self) -> None:
        session, votes = self.session, self.session.votes
        queues: Heap[Queue] = Heap(votes.queue_less)
        starving: dict[str, Heap[Job]] = {}
        under_request: dict[str, list[Job]] = {}
        tasks: dict[str, Heap[Task]] = {}
        for job in session.jobs.values():
            if job.is_pending() or not votes.job_valid(job) or not votes.job_starving(job) or job.has_topology():
                continue
            if job.queue not in starving:
                starving[job.queue] = Heap(votes.job_less)
                under_request[job.queue] = []
                queues.push(session.queues[job.queue])
            starving[job.queue].push(job)
            under_request[job.queue].append(job)
            tasks[job.uid] = self.waiting(job)
        for name, jobs in under_request.items():  # Volcano iterates over a map; here in the order of service
            in_order = Heap(votes.job_less, jobs)
            under_request[name] = [in_order.pop() for _ in jobs]
        while queues:
            queue = queues.pop()
            while starving[queue.name]:
                job = starving[queue.name].pop()
                statement = Statement(session)
                while votes.job_starving(job) and tasks[job.uid]:
                    task = tasks[job.uid].pop()
                    self.preempt_for(statement, task, self.of_other_jobs(queue, task))
                if votes.job_pipelined(job):
                    statement.commit()
                else:
                    statement.discard()
            for job in under_request[queue.name]:
                self.within(job)

    def waiting(self, job: Job) -> Heap[Task]:
        return Heap(self.session.votes.task_less, [t for t in job.with_status("Pending") if not t.gated])

    def within(self, job: Job) -> None:
        waiting = self.waiting(job)
        while waiting:
            task = waiting.pop()
            statement = Statement(self.session)
            if not self.preempt_for(statement, task, self.of_its_own_job(task)):
                statement.discard()
                return
            statement.commit()

    def of_other_jobs(self, queue: Queue, task: Task) -> MayGo:
        def may_be_evicted(victim: Task) -> bool:
            same_queue = self.session.jobs[victim.job].queue == queue.name
            return _may_be_evicted(task, victim) and same_queue and victim.job != task.job

        return may_be_evicted

    def of_its_own_job(self, task: Task) -> MayGo:
        return lambda victim: _may_be_evicted(task, victim) and victim.job == task.job

    def preempt_for(self, statement: Statement, task: Task, may_be_evicted: MayGo) -> bool:
        session, votes = self.session, self.session.votes
        if not self.is_eligible(task):
            return False
        try:
            votes.pre_predicate(task)
        except PredicateError:
            return False
        nodes = self.helper.predicate_nodes(task, resolvable_nodes(session, task), for_preemption(session))
        queue = session.queues[session.jobs[task.job].queue]
        if self.topology_aware:
            best = best_candidate(session, task, nodes, may_be_evicted)
            if best is None:
                return False
            for victim in best[1]:
                statement.evict(victim)
            try:
                statement.pipeline(task, best[0], eviction_occurred=True)
            except NodeError:
                return False
            return True

        def fits(node: Node) -> bool:
            if not votes.allocatable(queue, task) or not task.resreq.less_equal(node.future_idle()):
                return False
            try:
                votes.predicate(task, node)
            except PredicateError:
                return False
            return True

        for node in by_score(session, task, nodes):
            victims = votes.preemptable(task, [v for v in session.on_node(node) if may_be_evicted(v)])
            if not are_enough(task, node, victims):
                continue
            own = Statement(session)
            order = victims_queue(session, victims, task)
            while order and not fits(node):
                own.evict(order.pop())
            if fits(node):
                # Volcano sums up the requests of the victims, and `pods` does not count.
                evicted = any(not victim.best_effort for _, victim in own.steps)
                if own.steps and not evicted:
                    session.rarities.add("evicted-without-need")
                try:
                    own.pipeline(task, node, eviction_occurred=evicted)
                except NodeError:
                    own.discard()
                    continue
                statement.merge(own)
                return True
            own.discard()
        return False

    def is_eligible(self, task: Task) -> bool:
        """Whether its policy permits it, and no earlier nomination is pending."""
        session = self.session
        if task.pod["spec"].get("preemptionPolicy") == "Never":
            return False
        if not task.nominated:
            return True
        node = session.nodes.get(task.nominated)
        if node is None:
            return False
        try:
            session.votes.predicate(task, node)
        except PredicateError as e:
            if e.unresolvable:
                return True
        else:
            return False
        return not any(t.pod_priority < task.pod_priority and _is_preempted(t) for t in node.tasks.values())


def _may_be_evicted(task: Task, victim: Task) -> bool:
    if victim.status not in ("Bound", "Running") or not victim.preemptable:
        return False
    return not (task.best_effort and not victim.best_effort)


def _is_preempted(task: Task) -> bool:
    if not task.pod["metadata"].get("deletionTimestamp"):
        return False
    wanted = ("DisruptionTarget", "True", "PreemptionByScheduler")
    conditions = (task.pod.get("status") or {}).get("conditions") or []
    return any((c.get("type"), c.get("status"), c.get("reason")) == wanted for c in conditions)
