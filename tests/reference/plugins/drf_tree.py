"""Dominant resource fairness in a tree of queues, whose leaves are jobs. Volcano: drf with hierarchy."""

from __future__ import annotations

import re

from tests.reference.cluster import Queue
from tests.reference.job import Job
from tests.reference.resource import Resource, dominant_share
from tests.reference.session import Handler, Session
from tests.reference.task import Task
from tests.reference.votes import PERMIT

HIERARCHY = "volcano.sh/hierarchy"
WEIGHTS = "volcano.sh/hierarchy-weights"


class Step:
    """A node of the tree: of a path, or a job."""

    def __init__(self, weight: float = 1.0, job: Job | None = None) -> None:
        self.weight = weight
        self.job = job
        self.children: dict[str, Step] = {}
        self.allocated = Resource()
        self.saturated = False
        self.share = 0.0


class Tree:
    def __init__(self, session: Session) -> None:
        self.session = session
        self.held = {job.uid: job.allocated() for job in session.jobs.values()}
        """The allocated resources of jobs; changed by events."""

    def path(self, queue: Queue) -> list[str]:
        return queue.annotations.get(HIERARCHY, "").split("/")

    def grown(self) -> Step:
        """The current tree, with new counts."""
        session = self.session
        root = Step()
        for job in session.jobs.values():
            queue = session.queues[job.queue]
            weights = queue.annotations.get(WEIGHTS, "").split("/")
            at = root
            for i, name in enumerate(self.path(queue)[1:], 1):
                if name not in at.children:
                    at.children[name] = Step(weight_of(weights, i))
                at = at.children[name]
            at.children[f"job {job.uid}"] = Step(job=job)
        total = Resource()
        for amount in self.held.values():
            total.add(amount)
        self._count(root, total)
        return root

    def _count(self, step: Step, all_held: Resource) -> None:
        if step.job is not None:
            self._count_job(step, step.job, all_held)
            return
        for child in step.children.values():
            self._count(child, all_held)
        least = 1.0
        for child in step.children.values():
            if not child.saturated and child.share != 0:
                least = min(least, child.share)
        for child in step.children.values():
            if child.share != 0:
                factor = 1.0 if child.saturated else least / child.share
                step.allocated.add(child.allocated.clone().multi(factor))
        step.saturated = all(child.saturated for child in step.children.values())
        step.share = dominant_share(step.allocated, self.session.total)

    def _count_job(self, step: Step, job: Job, all_held: Resource) -> None:
        step.allocated = self.held[job.uid].clone()
        step.share = dominant_share(step.allocated, self.session.total)
        request = Resource()
        for task in job.tasks.values():
            request.add(task.resreq)
        for name in step.allocated.names():
            have, wanted = step.allocated.get(name), request.get(name)
            used_up = all_held.get(name) >= self.session.total.get(name)
            if wanted > 0 and (have >= wanted or used_up):
                step.saturated = True

    def compare(self, left: Queue, right: Queue) -> float:
        root = self.grown()
        a, b = root, root
        for x, y in zip(self.path(left)[1:], self.path(right)[1:], strict=False):
            a, b = a.children[x], b.children[y]
            if a.saturated != b.saturated:
                return 1 if a.saturated else -1
            if a.share / a.weight != b.share / b.weight:
                return a.share / a.weight - b.share / b.weight
        return 0


def weight_of(weights: list[str], i: int) -> float:
    if i >= len(weights) or not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", weights[i]):
        return 1.0
    return max(float(weights[i]), 1.0)


def drf_tree(session: Session) -> None:
    tree = Tree(session)

    def order(left: Queue, right: Queue) -> int:
        difference = tree.compare(left, right)
        return (difference > 0) - (difference < 0)

    def allocate(task: Task) -> None:
        tree.held[task.job].add(task.resreq)

    def deallocate(task: Task) -> None:
        tree.held[task.job].sub(task.resreq)

    def reclaimable(reclaimer: Task, candidates: list[Task]) -> tuple[list[Task], int]:
        queues, jobs = session.queues, session.jobs
        before = tree.held
        victims = []
        for candidate in candidates:
            tree.held = {uid: amount.clone() for uid, amount in before.items()}
            allocate(reclaimer)
            deallocate(candidate)
            if tree.compare(queues[jobs[reclaimer.job].queue], queues[jobs[candidate.job].queue]) < 0:
                victims.append(candidate)
        tree.held = before
        return victims, PERMIT

    session.votes.register("QueueOrder", "drf", order)
    session.votes.register("Reclaimable", "drf", reclaimable)
    session.handlers.append(Handler(allocate, deallocate))
