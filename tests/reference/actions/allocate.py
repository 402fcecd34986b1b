"""allocate: assigns nodes to jobs. Volcano: the action allocate."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.reference.actions.worksheet import Worksheet
from tests.reference.cluster import Queue
from tests.reference.conf import get_bool
from tests.reference.heap import Heap
from tests.reference.hyper_nodes import ROOT
from tests.reference.job import Job
from tests.reference.messages import fit_errors, insufficient, skipped_like_its_role
from tests.reference.node import Node, NodeError
from tests.reference.placing import PredicateHelper, best_node
from tests.reference.session import Session
from tests.reference.statement import Saved, Statement
from tests.reference.sub_job import SubJob
from tests.reference.task import Task
from tests.reference.votes import PredicateError


@dataclass
class Decision:
    """The nodes of a job and its sub-jobs. Volcano: Recorder."""

    hyper_node: str = ""
    of_sub_jobs: dict[str, dict[str, str]] = field(default_factory=dict)
    """By the HyperNode that was tried for the job, and sub-job."""


def allocate(session: Session) -> None:
    Allocate(session).run()


class Allocate:
    def __init__(self, session: Session) -> None:
        self.session = session
        self.votes = session.votes
        self.sheets: dict[str, Worksheet] = {}
        self.decisions: dict[str, Decision] = {}

    def run(self) -> None:
        session, votes = self.session, self.votes
        queues: Heap[Queue] = Heap(votes.queue_less)
        jobs: dict[str, Heap[Job]] = {}
        for job in session.jobs.values():
            if job.is_pending():
                if "enqueue" in session.conf.actions:
                    continue
                job.phase = "Inqueue"
            if not votes.job_valid(job):
                continue
            if not session.hyper_nodes.ready and job.has_topology():
                continue
            sheet = Worksheet(session, job, lambda t: not t.gated_by_others and not t.resreq.is_empty())
            if not sheet:
                continue
            self.sheets[job.uid] = sheet
            if job.queue not in jobs:
                jobs[job.queue] = Heap(votes.job_less)
                queues.push(session.queues[job.queue])
            jobs[job.queue].push(job)

        while queues:
            queue = queues.pop()
            if votes.overused(queue):
                continue
            if not jobs[queue.name]:
                continue
            job = jobs[queue.name].pop()
            if job.has_hard_topology() or job.policies:
                more = self.serve(queue, job)
            else:
                more = self.serve_flat(queue, job)
            if more:
                jobs[queue.name].push(job)
            # A statement that only makes the job pipelined is neither committed nor discarded.
            queues.push(queue)

    def serve(self, queue: Queue, job: Job) -> bool:
        """Place tasks of a job; returns whether the job is put back into its queue."""
        sheet = self.sheets[job.uid]
        statement = self.for_job(queue, job, sheet)
        if statement is None or not self.votes.job_ready(job):
            return False
        statement.commit()
        self.session.dirty.add(job.uid)
        tree, decision = self.session.hyper_nodes, self.decisions[job.uid]
        job.allocated_hyper_node = tree.lowest_common(decision.hyper_node, job.allocated_hyper_node)
        for uid, name in decision.of_sub_jobs.get(decision.hyper_node, {}).items():
            sub = job.sub_jobs[uid]
            sub.allocated_hyper_node = tree.lowest_common(name, sub.allocated_hyper_node)
            sub.nominated_hyper_node = ""
        return bool(sheet)

    def serve_flat(self, queue: Queue, job: Job) -> bool:
        sub = job.sub_jobs.get(job.uid)
        if sub is None:
            return False
        tasks = self.sheets[job.uid].tasks[sub.uid]
        statement = self.on_nominated_nodes(queue, job, sub, tasks) if sub.nominated_hyper_node else None
        if statement is None:
            statement = self.tasks(queue, job, sub, tasks, ROOT)
        if statement is None or not self.votes.job_ready(job):
            return False
        statement.commit()
        sub.nominated_hyper_node = ""
        return bool(tasks)

    # --- HyperNode by HyperNode

    def for_job(self, queue: Queue, job: Job, sheet: Worksheet) -> Statement | None:
        if not sheet:
            return None
        decision = self.decisions[job.uid] = Decision()  # without the results of earlier rounds
        subs = [job.sub_jobs[uid] for uid in sheet.tasks]
        for gradient in self.votes.gradients_of_job(job, ROOT, "allocate"):
            found: dict[str, tuple[list[Saved], Worksheet, float]] = {}
            for name in gradient:
                job.fit_errors.clear()
                before = {sub.uid: sub.allocated_hyper_node for sub in subs}
                own = sheet.clone()
                statements, score = self.sub_jobs_within(queue, job, own, name)
                for sub in subs:
                    sub.allocated_hyper_node = before[sub.uid]
                saved = [step for statement in statements for step in statement.save()]
                if not saved:
                    continue
                if self.votes.job_ready(job) or self.votes.job_pipelined(job):
                    found[name] = (saved, own, score)
                for statement in statements:
                    statement.discard()
            if found:
                best = min(found, key=lambda name: (-found[name][2], name))
                saved, own, _ = found[best]
                statement = Statement(self.session)
                try:
                    statement.recover(saved)
                except NodeError:  # Volcano leaves the steps before
                    return None
                sheet.become(own)
                decision.hyper_node = best
                return statement
        return None

    def sub_jobs_within(
        self, queue: Queue, job: Job, sheet: Worksheet, hyper_node: str
    ) -> tuple[list[Statement], float]:
        statements, total = [], 0.0
        while sheet.sub_jobs:
            sub = sheet.sub_jobs.pop()
            statement, score = self.for_sub_job(queue, job, sub, sheet, hyper_node)
            if statement is not None and statement.steps:
                statements.append(statement)
                total += score
                if sheet.tasks[sub.uid]:
                    sheet.sub_jobs.push(sub)
                if self.votes.job_ready(job):
                    break
        return statements, total

    def for_sub_job(
        self, queue: Queue, job: Job, sub: SubJob, sheet: Worksheet, of_job: str
    ) -> tuple[Statement | None, float]:
        if not sheet.tasks[sub.uid]:
            return None, 0.0
        tree = self.session.hyper_nodes
        decided = self.decisions[job.uid].of_sub_jobs.setdefault(of_job, {})
        if sub.nominated_hyper_node:
            statement = self.on_nominated_nodes(queue, job, sub, sheet.tasks[sub.uid])
            if statement is not None:
                decided[sub.uid] = sub.allocated_hyper_node
                return statement, 0.0
        for gradient in self.votes.gradients_of_sub_job(sub, of_job, "allocate"):
            found: dict[str, tuple[list[Saved], Heap[Task]]] = {}
            for name in gradient:
                for uid in sub.tasks:
                    job.fit_errors.pop(uid, None)
                tasks = sheet.tasks[sub.uid].clone()
                trial = self.tasks(queue, job, sub, tasks, name)
                if trial is not None and trial.steps:
                    found[name] = (trial.save(), tasks)
                    trial.discard()
            if found:
                scores = self.votes.hyper_node_scores(sub, sorted(found))
                best = min(found, key=lambda name: (-scores[name], name))
                statement = Statement(self.session)
                try:
                    statement.recover(found[best][0])
                except NodeError:
                    statement.discard()
                    return None, 0.0
                sub.allocated_hyper_node = tree.lowest_common(best, sub.allocated_hyper_node)
                sheet.tasks[sub.uid] = found[best][1]
                decided[sub.uid] = sub.allocated_hyper_node
                return statement, scores[best]
        return None, 0.0

    def on_nominated_nodes(self, queue: Queue, job: Job, sub: SubJob, tasks: Heap[Task]) -> Statement | None:
        """Place all tasks on their nominated nodes, or return None. Volcano: allocateFromNomination."""
        session, votes = self.session, self.votes
        waiting = tasks.clone()
        places = []
        inside = {n.name for n in session.nodes_of(sub.nominated_hyper_node)}
        ok = bool(inside)
        while waiting and ok:
            task = waiting.pop()
            ok = votes.allocatable(queue, task) and task.nominated in inside
            if ok:
                node = session.nodes[task.nominated]
                try:
                    votes.pre_predicate(task)
                    self.check(task, node)
                except PredicateError:
                    ok = False
                places.append((task, node))
        if not ok:
            sub.nominated_hyper_node = ""
            for task in tasks.items:
                task.forgets_nomination = True
            return None
        statement = Statement(session)
        for task, node in places:
            put(statement, task, node)
        tasks.items.clear()
        tree = session.hyper_nodes
        sub.allocated_hyper_node = tree.lowest_common(sub.nominated_hyper_node, sub.allocated_hyper_node)
        return statement

    # --- task by task

    def check(self, task: Task, node: Node) -> None:
        if not task.resreq.less_equal(node.future_idle()):
            if task.resreq.less_equal(node.idle):
                self.session.rarities.add("future-idle")
            raise PredicateError(insufficient(task.resreq, node.future_idle()))
        self.votes.predicate(task, node)

    def tasks(self, queue: Queue, job: Job, sub: SubJob, tasks: Heap[Task], hyper_node: str) -> Statement | None:
        session, votes = self.session, self.votes
        nodes = session.nodes_of(hyper_node)
        if not nodes:
            return None
        statement = Statement(session)
        cache = get_bool(session.conf.action_arguments("allocate"), "predicateErrorCacheEnable", True)
        helper = PredicateHelper(session, cache)
        around = sub.allocated_hyper_node
        while tasks:
            task = tasks.pop()
            if not votes.allocatable(queue, task):
                continue
            if task.gated:
                continue
            if job.task_has_fit_errors(sub, task):
                job.fit_errors[task.uid] = skipped_like_its_role(task)
                continue
            try:
                votes.pre_predicate(task)
            except PredicateError as e:
                job.fit_errors[task.uid] = fit_errors(dict.fromkeys(session.nodes, e))
                if job.need_continue_allocating(sub):
                    continue
                break
            fit: list[Node] = []
            nominated = session.nodes.get(task.nominated)
            if nominated in nodes and nominated is not None and task.resreq.less_equal(nominated.future_idle()):
                fit = helper.predicate_nodes(task, [nominated], self.check)
            if not fit:
                fit = helper.predicate_nodes(task, nodes, self.check)
            if not fit:
                job.fit_errors[task.uid] = fit_errors(helper.rejected, "" if hyper_node == ROOT else hyper_node)
                if job.need_continue_allocating(sub):
                    continue
                break
            if sub.topology is not None:
                task.job_hyper_node = around
            node = pick_node(session, task, fit)
            if node is None:
                continue
            try:
                put(statement, task, node)
            except NodeError:
                continue
            leaf = session.hyper_nodes.leaf(node.name)
            if sub.topology is not None and leaf:
                around = session.hyper_nodes.lowest_common(leaf, around)
            if votes.sub_job_ready(job, sub):
                break
        if votes.sub_job_ready(job, sub) or votes.sub_job_pipelined(job, sub):
            return statement
        statement.discard()
        return None


def put(statement: Statement, task: Task, node: Node) -> None:
    if task.resreq.less_equal(node.idle):
        statement.allocate(task, node)
    elif task.resreq.less_equal(node.future_idle()):
        statement.pipeline(task, node)


def pick_node(session: Session, task: Task, fit: list[Node]) -> Node | None:
    """A node with capacity now; else one that will have capacity."""
    now = [n for n in fit if task.resreq.less_equal(n.idle)]
    later = [n for n in fit if n not in now and task.resreq.less_equal(n.future_idle())]
    for nodes in (now, later):
        if nodes:
            return best_node(session, task, nodes)
    return None
