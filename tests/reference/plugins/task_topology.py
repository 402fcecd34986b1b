"""task-topology: affinity and anti-affinity between the roles of a job."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import Any

from tests.reference.conf import get_int
from tests.reference.job import Job
from tests.reference.node import Node
from tests.reference.resource import Resource
from tests.reference.session import Handler, Session
from tests.reference.task import ROLE, Task

AFFINITY = "volcano.sh/task-topology-affinity"
ANTI_AFFINITY = "volcano.sh/task-topology-anti-affinity"
ORDER = "volcano.sh/task-topology-task-order"


class Unknown(Exception):
    """An annotation contains an unknown role, or a role twice."""


class Bucket:
    def __init__(self, index: int) -> None:
        self.index = index
        self.roles: Counter[str] = Counter()
        self.tasks: dict[str, Task] = {}
        """The tasks that are not placed yet."""
        self.request = Resource()
        """The sum of their requests at the start."""
        self.bound = 0
        self.on_node: Counter[str] = Counter()

    def amount(self) -> float:
        r = self.request
        return r.cpu + r.memory / 1024 / 1024 + sum((r.scalars or {}).values())


class Manager:
    """The buckets of one job."""

    def __init__(self, job: Job) -> None:
        self.known = {role_of(t) for t in job.tasks.values()}
        self.affinity: set[frozenset[str]] = set()
        self.anti_affinity: set[frozenset[str]] = set()
        self.priority: dict[str, int] = {}
        for group in self.groups(job.annotations.get(AFFINITY, "")):
            self.pair(group, self.affinity, alone=2, together=3)
        for group in self.groups(job.annotations.get(ANTI_AFFINITY, "")):
            self.pair(group, self.anti_affinity, alone=4, together=1)
        order = self.checked((job.annotations.get(ORDER) or "").split(","))
        self.order = {role: len(order) - i for i, role in enumerate(order)}
        self.buckets: list[Bucket] = []
        self.of: dict[str, Bucket] = {}
        self.roles_on: dict[str, Counter[str]] = {}
        """The tasks that were placed in this session."""
        self.build(list(job.tasks.values()))
        self.largest = max((len(b.tasks) + b.bound for b in self.buckets), default=0)

    def groups(self, text: str) -> list[list[str]]:
        found = []
        for part in text.split(";"):
            found.append(self.checked(part.split(",")))
        return found

    def checked(self, group: list[str]) -> list[str]:
        """An empty text between two commas is a role that does not exist."""
        named = [role for role in group if role]
        if len(set(named)) < len(named) or not set(named) <= self.known:
            raise Unknown(group)
        return group

    def pair(self, group: list[str], into: set[frozenset[str]], alone: int, together: int) -> None:
        if len(group) == 1:
            into.add(frozenset(group))
            self.priority[group[0]] = max(self.priority.get(group[0], 0), alone)
        for a, b in combinations(group, 2):
            into.add(frozenset((a, b)))
            for role in (a, b):
                self.priority[role] = max(self.priority.get(role, 0), together)

    def rank(self, task: Task) -> tuple[int, int]:
        return self.order.get(role_of(task), 0), self.priority.get(role_of(task), 0)

    def build(self, tasks: list[Task]) -> None:
        concerned = [t for t in tasks if role_of(t) and role_of(t) in self.priority]
        concerned.sort(key=lambda t: t.name)
        concerned.sort(key=self.rank, reverse=True)
        concerned.sort(key=lambda t: not t.node)
        of_node: dict[str, Bucket] = {}
        for task in concerned:
            bucket: Bucket | None
            if task.node:
                bucket = of_node.get(task.node)
            else:
                bucket = self.best(task)
            if bucket is None:
                bucket = Bucket(len(self.buckets))
                self.buckets.append(bucket)
            self.of[task.uid] = bucket
            bucket.roles[role_of(task)] += 1
            if task.node:
                of_node[task.node] = bucket
                bucket.on_node[task.node] += 1
                bucket.bound += 1
            else:
                bucket.tasks[task.uid] = task
                bucket.request.add(task.resreq)

    def best(self, task: Task) -> Bucket | None:
        best = None
        for bucket in self.buckets:
            if best is None:
                best = bucket
                continue
            more = self.affinity_of(task, bucket.roles) - self.affinity_of(task, best.roles)
            if more > 0 or (more == 0 and bucket.amount() < best.amount()):
                best = bucket
        return best if best is not None and self.affinity_of(task, best.roles) >= 0 else None

    def affinity_of(self, task: Task, others: Counter[str], only_dislike: bool = False) -> int:
        value = 0
        for role, count in others.items():
            pair = frozenset((role, role_of(task)))
            if pair in self.affinity and not only_dislike:
                value += count
            if pair in self.anti_affinity:
                value -= count
        return value

    def score(self, task: Task, node: Node) -> float:
        room = node.idle.clone().add(node.releasing)
        bucket = self.of.get(task.uid)
        if bucket is None or less_partly(room, task.resreq):
            return 0.0
        score = bucket.on_node[node.name] + len(bucket.tasks)
        score += min(0, self.affinity_of(task, self.roles_on.get(node.name, Counter()), only_dislike=True))
        left = bucket.request.clone()
        for other in bucket.tasks.values():
            if left.less_equal(room):
                break
            if other.uid != task.uid:
                left.sub(other.resreq)
                score -= 1
        return float(score)

    def place(self, task: Task) -> None:
        """Volcano never undoes this, so that it may happen to a task several times."""
        self.roles_on.setdefault(task.node, Counter())[role_of(task)] += 1
        bucket = self.of.get(task.uid)
        if bucket is not None:
            bucket.tasks.pop(task.uid, None)
            bucket.request.sub(task.resreq)
            bucket.on_node[task.node] += 1
            bucket.bound += 1


def task_topology(session: Session, arguments: dict[str, Any]) -> None:
    weight = get_int(arguments, "task-topology.weight", 1)
    managers: dict[str, Manager] = {}
    for job in session.jobs.values():
        if job.with_status("Pending"):
            try:
                managers[job.uid] = Manager(job)
            except Unknown:
                continue

    def task_order(left: Task, right: Task) -> int:
        a = managers[left.job].of.get(left.uid) if left.job in managers else None
        b = managers[right.job].of.get(right.uid) if right.job in managers else None
        if (a is None) != (b is None):
            return 1 if a is None else -1
        if a is None or b is None or left.job != right.job:
            return 0
        if len(a.tasks) != len(b.tasks):
            return len(b.tasks) - len(a.tasks)
        if a is not b:
            return a.index - b.index
        mine, other = managers[left.job].rank(left), managers[left.job].rank(right)
        return (mine < other) - (mine > other)

    def node_order(task: Task, node: Node) -> float:
        manager = managers.get(task.job)
        if manager is None or not manager.largest:
            return 0.0
        return manager.score(task, node) * weight * 100 / manager.largest

    def allocate(task: Task) -> None:
        if task.job in managers and not session.simulating:
            managers[task.job].place(task)

    session.votes.register("TaskOrder", "task-topology", task_order)
    session.votes.register("NodeOrder", "task-topology", node_order)
    session.handlers.append(Handler(allocate, lambda task: None))


def role_of(task: Task) -> str:
    return (task.pod["metadata"].get("annotations") or {}).get(ROLE) or ""


def less_partly(have: Resource, wanted: Resource) -> bool:
    """Volcano: LessPartly with Zero."""
    if have.cpu < wanted.cpu or have.memory < wanted.memory:
        return True
    for name in wanted.scalars or {}:
        if name not in (have.scalars or {}):
            return True
    return any(amount < wanted.get(name) for name, amount in (have.scalars or {}).items())
