"""task-topology: which roles of a job should share a node, and which should not. Volcano: plugin task-topology.

The PodGroup's annotations list groups of roles with affinity (`volcano.sh/task-topology-affinity`) or anti-affinity,
and an order of roles. The plugin divides the waiting tasks of such a job into buckets of tasks with affinity. A node
scores higher the more tasks of the bucket it has or has capacity for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from itertools import combinations
from typing import Any, Literal, NamedTuple

import numpy as np
from msgspec import field

from volcano_py.api import names
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.plugin import Plugin, PluginArguments
from volcano_py.scheduler.framework.search.node_rules import DOMAIN, Bools, Floats, Indices, Scope
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.resource import EPS, Resource
from volcano_py.scheduler.model.resource_names import CPU, MEMORY
from volcano_py.scheduler.noderules.listed_resources import listed_resources

AFFINITY = "volcano.sh/task-topology-affinity"
ANTI_AFFINITY = "volcano.sh/task-topology-anti-affinity"
TASK_ORDER = "volcano.sh/task-topology-task-order"


class RoleTopology(NamedTuple):
    """The content of a PodGroup's annotations: groups of roles, and the order of roles."""

    affinity: list[list[str]]
    anti_affinity: list[list[str]]
    order: list[str]


def read(annotations: Mapping[str, str], roles: Collection[str], job: str) -> RoleTopology | None:
    """The topology in the annotations of a job with these roles; None if there is none. Raises ValueError for an
    unknown role, or a role that is twice in a group."""
    if not any(annotations.get(key) for key in (AFFINITY, ANTI_AFFINITY, TASK_ORDER)):
        return None
    affinity = _groups(annotations.get(AFFINITY, ""))
    anti_affinity = _groups(annotations.get(ANTI_AFFINITY, ""))
    text = annotations.get(TASK_ORDER, "")
    order = text.split(",") if text else []
    for group in (*affinity, *anti_affinity, order):
        named = [role for role in group if role]
        for i, role in enumerate(named):
            if role not in roles:
                raise ValueError(f"task {role} do not exist in job <{job}>")
            if role in named[:i]:
                raise ValueError(f"task {role} is duplicate in job <{job}>")
    return RoleTopology(affinity, anti_affinity, order)


def role_of(task: Task) -> str:
    """The role in the pod's annotation; a label does not count here."""
    return (task.pod.metadata.annotations or {}).get(names.TASK_SPEC) or ""


def _groups(text: str) -> list[list[str]]:
    return [group.split(",") for group in text.split(";")] if text else []


class _Bucket:
    """Tasks that should share a node. Tasks that have a node are only counted."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.roles: Counter[str] = Counter()
        self.waiting: dict[str, Task] = {}
        self.request = Resource()
        self.placed: Counter[int | str] = Counter()
        """Tasks by node: its column, or its name if the cluster has no such node."""

    @property
    def size(self) -> int:
        return len(self.waiting) + self.placed.total()

    def add(self, task: Task, node: int | str | None) -> None:
        self.roles[role_of(task)] += 1
        if node is not None:
            self.placed[node] += 1
            return
        self.waiting[task.key] = task
        self.request.add(task.request)

    def place(self, task: Task, node: int) -> None:
        """Count a task that gets a node. The count is never undone: a task that is placed again after a dry run counts
        twice."""
        self.waiting.pop(task.key, None)
        self.request.sub_unchecked(task.request)
        self.placed[node] += 1


class Manager:
    """The buckets of one job."""

    def __init__(self, topology: RoleTopology) -> None:
        self._near: set[frozenset[str]] = set()
        """Pairs of roles with affinity; a role with affinity to itself is a set of one."""
        self._apart: set[frozenset[str]] = set()
        """Pairs of roles with anti-affinity. A pair may be in both sets."""
        self._priority: Counter[str] = Counter()
        for groups, pairs, alone, together in (
            (topology.affinity, self._near, 2, 3),
            (topology.anti_affinity, self._apart, 4, 1),
        ):
            for group in groups:
                if len(group) == 1:
                    pairs.add(frozenset(group))
                    self._priority[group[0]] = max(self._priority[group[0]], alone)
                for a, b in combinations(group, 2):
                    pairs.add(frozenset((a, b)))
                    for role in (a, b):
                        self._priority[role] = max(self._priority[role], together)
        count = len(topology.order)
        self._order = {role: count - i for i, role in enumerate(topology.order)}
        self.buckets: list[_Bucket] = []
        self.bucket_of: dict[str, _Bucket] = {}
        self.roles_on: dict[int, Counter[str]] = {}
        """Roles that were placed in this session, by node."""
        self.largest = 0

    def rank(self, role: str) -> tuple[int, int]:
        """The order of a role: first by the annotation, then by the strength of its affinity; higher is first."""
        return self._order.get(role, 0), self._priority[role]

    def build(self, tasks: list[tuple[Task, int | str | None]]) -> None:
        """Divide tasks, each with its node or None, into buckets."""
        named = [(t, n) for t, n in tasks if role_of(t) and self._priority[role_of(t)]]
        named.sort(key=lambda each: (each[1] is None, *(-r for r in self.rank(role_of(each[0]))), each[0].name))
        of_node: dict[int | str, _Bucket] = {}
        for task, node in named:
            if node is not None:
                bucket = of_node[node] = of_node.get(node) or self._new()
            else:
                bucket = self._best(task)
            bucket.add(task, node)
            self.bucket_of[task.key] = bucket
        self.largest = max((b.size for b in self.buckets), default=0)

    def _new(self) -> _Bucket:
        bucket = _Bucket(len(self.buckets))
        self.buckets.append(bucket)
        return bucket

    def _best(self, task: Task) -> _Bucket:
        if not self.buckets:
            return self._new()
        role = role_of(task)
        best = max(self.buckets, key=lambda b: (self.liking(role, b.roles), -_amount(b.request), -b.index))
        return best if self.liking(role, best.roles) >= 0 else self._new()

    def liking(self, role: str, others: Counter[str]) -> int:
        """The affinity of a role with others: plus one for each role with affinity, minus one for each other role."""
        return self._sum(role, others, self._near) - self._sum(role, others, self._apart)

    def dislike(self, role: str, node: int) -> int:
        """Minus one for each task placed on a node whose role has anti-affinity with a role."""
        return -self._sum(role, self.roles_on.get(node, Counter()), self._apart)

    def _sum(self, role: str, others: Counter[str], pairs: set[frozenset[str]]) -> int:
        return sum(count for other, count in others.items() if frozenset((role, other)) in pairs)


def _amount(request: Resource) -> float:
    """A request as one number, to compare buckets: the sum of milli-cpu, MiB and scalars."""
    scalars = sum((request.scalars or {}).values())
    return request[CPU] + request[MEMORY] / 2**20 + scalars


class _WithinJob:
    """A key that orders the tasks of one job; tasks of different jobs are equal."""

    __slots__ = ("job", "key")

    def __init__(self, job: str, key: tuple[int, ...]) -> None:
        self.job = job
        self.key = key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _WithinJob) and (self.job != other.job or self.key == other.key)

    def __lt__(self, other: _WithinJob) -> bool:
        return self.job == other.job and self.key < other.key

    __hash__ = None  # type: ignore[assignment]


class TaskTopology(Plugin):
    """See `Arguments`."""

    name = "task-topology"

    class Arguments(PluginArguments):
        weight: int = field(default=1, name="task-topology.weight")

    arguments: Arguments

    def __init__(self, arguments: Mapping[str, Any] | None = None) -> None:
        super().__init__(arguments)
        self.weight = self.arguments.weight

    def on_session_open(self, session: Session) -> None:
        managers: dict[str, Manager] = {}
        for job in session.jobs.active():
            if job.counts[st.PENDING]:
                try:
                    made = _manager(session, job)
                except ValueError as e:
                    self.warn(f"{e}; its annotations are ignored")
                    continue
                if made is not None:
                    managers[job.uid] = made

        def order(task: Task) -> tuple[int, ...] | tuple[int, _WithinJob]:
            manager = managers.get(task.job)
            bucket = manager.bucket_of.get(task.key) if manager is not None else None
            if manager is None or bucket is None:
                return (1,)
            key = (-len(bucket.waiting), bucket.index, *(-r for r in manager.rank(role_of(task))))
            return (0, _WithinJob(task.job, key))

        def placed(task: Task, node: int) -> None:
            manager = managers.get(task.job)
            if manager is not None:
                manager.roles_on.setdefault(node, Counter())[role_of(task)] += 1
                if task.key in manager.bucket_of:
                    manager.bucket_of[task.key].place(task, node)

        session.add_task_order(order, moves=bool(managers))
        if managers and self.weight:
            session.add_scores(_Together(session, managers, self.weight))
            session.add_event_handler(allocate=placed, simulated=False)


def _manager(session: Session, job: SessionJob) -> Manager | None:
    roles = {role_of(t) for t in job.tasks.values()}
    topology = read(job.pod_group.metadata.annotations or {}, roles, job.uid)
    if topology is None:
        return None
    manager = Manager(topology)
    manager.build([(t, _place(session, t)) for t in job.tasks.values()])
    return manager


def _place(session: Session, task: Task) -> int | str | None:
    node = session.node_of(task)
    return task.node or None if node is None else node


class _Together:
    """How many tasks of a task's bucket are on a node, or fit there together with the task."""

    name = "task-topology"
    scope: Literal[Scope.DOMAIN] = DOMAIN
    batch = False

    def __init__(self, session: Session, managers: dict[str, Manager], weight: int) -> None:
        self._session = session
        self._managers = managers
        self._weight = weight

    def applies(self, task: Task) -> bool:
        return True

    def constant(self, task: Task) -> float | None:
        manager = self._managers.get(task.job)
        return 0.0 if manager is None or task.key not in manager.bucket_of else None

    def score(self, task: Task, candidates: Indices) -> Floats:
        rates = np.zeros(len(candidates))
        manager = self._managers.get(task.job)
        bucket = manager.bucket_of.get(task.key) if manager is not None else None
        if manager is None or bucket is None or not manager.largest:
            return rates
        fits, without = self._fits(bucket, task, candidates)
        role, waiting = role_of(task), len(bucket.waiting)
        for i in np.flatnonzero(fits).tolist():
            node = candidates.item(i)
            rates[i] = bucket.placed[node] + manager.dislike(role, node) + waiting - without.item(i)
        return rates * self._weight * 100 / manager.largest

    def _fits(self, bucket: _Bucket, task: Task, candidates: Indices) -> tuple[Bools, Indices]:
        """For each candidate: whether the task fits, and how many of the other tasks in its bucket must be left out so
        that the rest also fits."""
        table, n = self._session.table, self._session.numbers
        free = n.idle[:, candidates] + n.releasing[:, candidates]
        fits: Bools = np.logical_and.reduce(task.spec_class.vector(table)[:, None] <= free)
        for name in task.spec_class.idle_wishes:
            # A resource that the node does not list at all is left out: Volcano finds it lacking.
            named = [name in listed_resources(self._session, i) for i in candidates.tolist()]
            fits &= np.array(named, dtype=bool) | (free[table.rows[name]] != 0)
        lacking = -free
        for name, amount in bucket.request.as_dict().items():
            lacking[table.rows[name]] += amount
        without = np.zeros(len(candidates), dtype=np.intp)
        too_many = fits.copy()
        for other in bucket.waiting.values():
            too_many &= (lacking >= EPS).any(axis=0)
            if not too_many.any():
                break
            if other.key != task.key:
                lacking -= other.spec_class.vector(table)[:, None]
                without += too_many
        return fits, without
