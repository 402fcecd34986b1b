"""A session: the picture, the plugins, and what is decided. Volcano: OpenSession, Session, CloseSession."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.reference.cluster import Cluster
from tests.reference.conf import Conf
from tests.reference.job import Job
from tests.reference.kube.node_map import NodeMap
from tests.reference.node import Node, NodeError
from tests.reference.resource import Resource
from tests.reference.task import Task, running_number
from tests.reference.votes import Votes

Rank = Callable[[str], Any]
"""node name → something to sort by; of nodes of equal score the lowest is taken"""


@dataclass
class Handler:
    """What a plugin does when a task gets or loses its place (pipelined counts too)."""

    allocate: Callable[[Task], None]
    deallocate: Callable[[Task], None]


class Session:
    def __init__(
        self, cluster: Cluster, conf: Conf, rank: Rank, now: float = 0.0, memory: dict[str, Any] | None = None
    ) -> None:
        from tests.reference.plugins import PLUGINS

        self.cluster = cluster
        self.conf = conf
        self.rank = rank
        self.now = now
        self.memory = {} if memory is None else memory
        """What the scheduler remembers from one session to the next."""
        self.nodes: dict[str, Node] = cluster.copy_of_nodes()
        self.queues = cluster.queues
        self.jobs: dict[str, Job] = dict(sorted(cluster.jobs().items()))
        """In the order of their uids, where Volcano has none."""
        self.total = Resource()
        for node in self.nodes.values():
            self.total.add(node.allocatable)
        self.node_map = NodeMap(self.nodes, cluster)
        self.votes = Votes(conf)
        self.handlers: list[Handler] = []
        self.closers: list[Callable[[], None]] = []
        self.rarities: set[str] = set()
        """Rules that seldom matter and did here; for telling differences apart."""
        self.bound: dict[str, str] = {}
        self.evicted: list[str] = []
        for tier in conf.tiers:
            for option in tier:
                if option.name in PLUGINS:
                    PLUGINS[option.name](self, option.arguments)

    # --- tasks get and lose places

    def place(self, task: Task, node: Node, status: str) -> None:
        """`status`: Allocated or Pipelined."""
        task.status = status
        node.add_task(task)
        for handler in self.handlers:
            handler.allocate(task)

    def unplace(self, task: Task) -> None:
        task.status = "Pending"
        self.nodes[task.node].remove_task(task)
        for handler in self.handlers:
            handler.deallocate(task)
        task.node = ""

    def start_eviction(self, task: Task) -> None:
        task.status = "Releasing"
        self.nodes[task.node].update_task(task)
        for handler in self.handlers:
            handler.deallocate(task)

    def take_back_eviction(self, task: Task) -> None:
        """Running, even if it was only Bound."""
        task.status = "Running"
        self.nodes[task.node].update_task(task)
        for handler in self.handlers:
            handler.allocate(task)

    def on_node(self, node: Node) -> list[Task]:
        """Who is there, and belongs to a job; Volcano walks a map, here the youngest come first."""
        tasks = [self.jobs[t.job].tasks[t.uid] for t in node.tasks.values() if t.job in self.jobs]
        return sorted(tasks, key=lambda t: (t.created, running_number(t.name) or 0, t.key), reverse=True)

    def bind(self, task: Task) -> None:
        """Hand an Allocated task to the cache. Raises NodeError."""
        try:
            self.cluster.add_bind_task(task)
        except NodeError:
            self.rarities.add("bind-refused")
            raise
        task.status = "Binding"
        self.bound[task.key] = task.node

    def allocate(self, task: Task, node: Node) -> None:
        """At once, without a statement. Volcano: Session.Allocate. Raises NodeError, and rolls nothing back."""
        self.place(task, node, "Allocated")
        job = self.jobs[task.job]
        if self.votes.job_ready(job):
            # Volcano walks a map here, and stops at the first that is refused.
            ready = job.with_status("Allocated")
            if len(ready) > 1:
                self.rarities.add("dispatch-order")
            for t in ready:
                self.bind(t)

    # --- the end

    def close(self) -> None:
        for closer in self.closers:
            closer()
        for job in self.jobs.values():
            job.phase = phase(job)


def phase(job: Job) -> str:
    """The phase a PodGroup gets at the end of a session."""
    if job.unschedulable and job.with_status("Running"):
        return "Unknown"
    leaving = [t for t in job.with_status("Releasing") if t.node]
    scheduled = len(job.with_status("Running", "Bound", "Failed", "Succeeded")) + len(leaving)
    completed = len(job.with_status("Failed", "Succeeded"))
    if scheduled >= job.min_available:
        return "Completed" if scheduled == completed else "Running"
    return "Inqueue" if job.phase == "Inqueue" else "Pending"
