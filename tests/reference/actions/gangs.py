"""Eviction for whole gangs: gangpreempt within a queue, gangreclaim between queues."""

from __future__ import annotations

from dataclasses import dataclass

from tests.reference.actions.allocate import pick_node
from tests.reference.actions.bundles import Bundle, bundles_of, in_order, only_allowed, total
from tests.reference.actions.worksheet import Worksheet
from tests.reference.cluster import Queue
from tests.reference.conf import get_bool, get_int
from tests.reference.heap import Heap
from tests.reference.hyper_nodes import ROOT
from tests.reference.job import Job
from tests.reference.messages import insufficient
from tests.reference.node import Node, NodeError
from tests.reference.placing import PredicateHelper, for_preemption, resolvable_nodes
from tests.reference.resource import Resource
from tests.reference.session import Session
from tests.reference.statement import Saved, Statement
from tests.reference.sub_job import SubJob
from tests.reference.task import Task, truth
from tests.reference.votes import PredicateError


@dataclass
class Eviction:
    """The context of an eviction for plugins. Volcano: EvictionContext."""

    kind: str
    job: Job
    hyper_node: str


def gangpreempt(session: Session) -> None:
    Gangs(session, "gangpreempt").run()


def gangreclaim(session: Session) -> None:
    Gangs(session, "gangreclaim").run()


class Gangs:
    def __init__(self, session: Session, kind: str) -> None:
        self.session = session
        self.votes = session.votes
        self.kind = kind
        self.reclaims = kind == "gangreclaim"
        arguments = session.conf.action_arguments(kind)
        most = get_int(arguments, "maxDomains", 8)
        self.most_domains = most if most > 0 else 8
        self.whole_bundles = get_bool(arguments, "allowWholeBundle", True)

    def run(self) -> None:
        session, votes = self.session, self.votes
        queues: Heap[Queue] = Heap(votes.queue_less)
        starving: dict[str, Heap[Job]] = {}
        for job in session.jobs.values():
            if job.is_pending() or not votes.job_valid(job):
                continue
            if job.queue not in starving:
                starving[job.queue] = Heap(votes.job_less)
                queues.push(session.queues[job.queue])
            if votes.job_starving(job):
                starving[job.queue].push(job)
        while queues:
            queue = queues.pop()
            if self.reclaims and votes.overused(queue):
                continue
            while starving[queue.name]:
                job = starving[queue.name].pop()
                statement = Statement(session)
                places = self.try_domains(statement, queue, job)
                if votes.job_pipelined(job):
                    statement.commit()
                    for sub, name in places:
                        sub.nominated_hyper_node = name
                else:
                    statement.discard()

    def sheet(self, job: Job) -> Worksheet:
        return Worksheet(self.session, job, lambda t: not t.gated and not t.resreq.is_empty())

    def waiting(self, job: Job) -> list[Task]:
        """All tasks to place; of a ready job only the first part."""
        sheet = self.sheet(job)
        found: list[Task] = []
        while sheet.sub_jobs:
            found += sheet.tasks[sheet.sub_jobs.pop().uid].items
            if self.votes.job_ready(job):
                break
        return found

    def try_domains(self, statement: Statement, queue: Queue, job: Job) -> list[tuple[SubJob, str]]:
        session, votes = self.session, self.votes
        waiting = self.waiting(job)
        if not waiting:
            return []
        if self.reclaims and not votes.preemptive(queue, waiting):
            return []
        need = total(waiting)
        domains: list[str] = []
        for gradient in votes.gradients_of_job(job, ROOT, "evict"):
            domains += [name for name in gradient if name not in domains]
        if not domains and not job.has_hard_topology():
            domains = [ROOT]
        for domain in domains[: self.most_domains]:
            if not session.nodes_of(domain):
                continue
            room = Resource()
            for node in session.nodes_of(domain):
                room.add(node.idle).add(node.releasing)
            victims: list[Task] = []
            for bundle in self.bundles(job, domain, need):
                victims += bundle.tasks
                if not need.less_equal(room.clone().add(total(victims))):
                    continue
                found = self.plan(queue, job, domain, victims)
                if found is not None:
                    try:
                        statement.recover(found[0])
                    except NodeError:
                        statement.discard()
                        continue
                    return found[1]
        return []

    # --- victims

    def bundles(self, job: Job, domain: str, need: Resource) -> list[Bundle]:
        of: dict[str, list[Task]] = {}
        for node in self.session.nodes_of(domain):
            for task in self.session.on_node(node):
                if self.may_be_evicted(job, task):
                    of.setdefault(task.job, []).append(task)
        found: list[Bundle] = []
        for uid in sorted(of):
            found += bundles_of(self.session.jobs[uid], of[uid])

        def before(a: Job, b: Job) -> bool:
            if not self.reclaims:
                return not self.votes.job_less(a, b)
            queues = self.session.queues
            return self.votes.victim_queue_less(queues[a.queue], queues[b.queue], queues[job.queue])

        found = in_order(found, need, before)
        candidates = [t for b in found for t in b.tasks]
        allowed = self.votes.unified_evictable(Eviction(self.kind, job, domain), candidates)
        found = in_order(only_allowed(found, {t.uid for t in allowed}), need, before)
        return [b for b in found if self.whole_bundles or not b.whole]

    def may_be_evicted(self, job: Job, task: Task) -> bool:
        theirs = self.session.jobs[task.job]
        if not task.preemptable or not truth(theirs.preemptable_mark, True):
            return False
        if self.reclaims:
            other = theirs.queue != job.queue and self.session.queues[theirs.queue].reclaimable
            return other and task.status == "Running"
        less = theirs.uid != job.uid and theirs.queue == job.queue and theirs.priority < job.priority
        return less and task.status in ("Bound", "Running")

    # --- nodes

    def plan(
        self, queue: Queue, job: Job, domain: str, victims: list[Task]
    ) -> tuple[list[Saved], list[tuple[SubJob, str]]] | None:
        """The steps of an eviction; the session is not changed. Volcano: BuildNominationPlanInDomain."""
        votes = self.votes
        sheet = self.sheet(job)
        if not sheet:
            return None
        was_ready = votes.job_ready(job)
        chain = [Statement(self.session)]
        for victim in victims:
            chain[0].evict(victim)
        places: list[tuple[SubJob, str]] = []
        good = True
        while sheet.sub_jobs:
            sub = sheet.sub_jobs.pop()
            names = [domain]
            if job.has_hard_topology():
                names = [n for group in votes.gradients_of_sub_job(sub, domain, "evict") for n in group]
            for name in names:
                trial = self.trial(queue, job, sub, sheet.tasks[sub.uid].clone(), name, bool(victims))
                if trial is not None:
                    chain.append(trial)
                    places.append((sub, name))
                    break
            else:
                good = False
                break
            if was_ready or votes.job_pipelined(job):
                break
        good = good and votes.job_pipelined(job)
        saved = [step for statement in chain for step in statement.save()]
        for statement in reversed(chain):
            statement.discard()
        return (saved, places) if good else None

    def trial(
        self, queue: Queue, job: Job, sub: SubJob, tasks: Heap[Task], hyper_node: str, evicted: bool
    ) -> Statement | None:
        session, votes = self.session, self.votes
        statement = Statement(session)
        cache = get_bool(session.conf.action_arguments("allocate"), "predicateErrorCacheEnable", True)
        helper = PredicateHelper(session, cache)
        lenient = for_preemption(session)

        def check(task: Task, node: Node) -> None:
            if not task.resreq.less_equal(node.future_idle()):
                raise PredicateError(insufficient(task.resreq, node.future_idle()))
            lenient(task, node)

        while tasks:
            task = tasks.pop()
            node = None
            if votes.allocatable(queue, task):
                allowed = resolvable_nodes(session, task)
                nodes = [n for n in session.nodes_of(hyper_node) if not allowed or n in allowed]
                try:
                    votes.pre_predicate(task)
                    node = pick_node(session, task, helper.predicate_nodes(task, nodes, check))
                except PredicateError:
                    node = None
            if node is None:
                statement.discard()
                return None
            try:
                statement.pipeline(task, node, eviction_occurred=evicted)
            except NodeError:  # Volcano undoes the failed step twice
                self.session.rarities.add("trial-undone-twice")
                statement.discard()
                return None
        if votes.sub_job_ready(job, sub) or votes.sub_job_pipelined(job, sub):
            return statement
        statement.discard()
        return None
