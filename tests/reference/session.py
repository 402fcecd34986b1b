"""A session: the snapshot, the plugins, and the decisions. Volcano: OpenSession, Session, CloseSession."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.reference.cluster import Cluster
from tests.reference.conf import Conf
from tests.reference.hyper_nodes import ROOT, HyperNodes
from tests.reference.job import Job
from tests.reference.kube.node_map import NodeMap
from tests.reference.kube.volumes import Volumes
from tests.reference.node import Node, NodeError
from tests.reference.resource import Resource
from tests.reference.task import ALLOCATED_STATUS, Task, running_number
from tests.reference.votes import Votes

ROOT_QUEUE = "root"
Rank = Callable[[str], Any]
"""node name → a sort key; of nodes of equal score the lowest is used"""


@dataclass
class Handler:
    """A plugin's handlers for tasks that get or lose a node (pipelined counts too)."""

    allocate: Callable[[Task], str | None]
    """Returns why the placement fails."""
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
        """The state that the scheduler keeps between sessions."""
        self.nodes: dict[str, Node] = cluster.copy_of_nodes()
        self.queues = cluster.queues
        self.jobs: dict[str, Job] = dict(sorted(cluster.jobs().items()))
        """In the order of their uids, where Volcano has no order."""
        self.rarities: set[str] = set()
        """Rare events in this session, to classify differences."""
        self.simulating = False
        """During a dry run: moves are undone at once, and only handlers of queue plugins are called."""
        self.removed: list[Task] = []
        """In a dry run: the pods that a copy of the node lacks."""
        self.hyper_nodes = HyperNodes(cluster.of("HyperNode"), {n: node.labels for n, node in self.nodes.items()})
        self._open_topologies()
        self.total = Resource()
        for node in self.nodes.values():
            self.total.add(node.allocatable)
        self.node_map = NodeMap(self.nodes, cluster)
        self.volumes = Volumes(cluster.storage)
        self.votes = Votes(conf)
        self.handlers: list[Handler] = []
        self.closers: list[Callable[[], None]] = []
        self.bound: dict[str, str] = {}
        self.evicted: list[str] = []
        self.annotations: dict[str, dict[str, str]] = {}
        """By pod: what its binding adds."""
        for tier in conf.tiers:
            for option in tier:
                if option.name in PLUGINS:
                    PLUGINS[option.name](self, option.arguments)

    # --- HyperNodes

    def nodes_of(self, hyper_node: str) -> list[Node]:
        """Volcano: RealNodesList."""
        return [node for name, node in self.nodes.items() if name in self.hyper_nodes.of[hyper_node].nodes]

    def _open_topologies(self) -> None:
        """Soft topologies become hard with the widest tier; HyperNodes of earlier sessions are restored."""
        tree = self.hyper_nodes
        top = tree.of[ROOT].tier
        remembered = self.memory.setdefault("hyper nodes", {})
        self.dirty: set[str] = set()
        """Jobs whose HyperNodes are kept after the session."""
        for job in self.jobs.values():
            for topology in (job.topology, *(s.topology for s in job.sub_jobs.values())):
                if topology is not None and topology.tier is None and topology.tier_name:
                    topology.tier = tree.tier_of_name.get(topology.tier_name)
            if job.topology is not None and job.topology.mode == "soft":
                job.topology.mode, job.topology.tier = "hard", top
            for sub in job.sub_jobs.values():
                if sub.topology is not None and sub.topology.mode == "soft":
                    sub.topology.mode = "hard"
                    of_job = job.topology.tier if job.topology is not None else None
                    sub.topology.tier = top if of_job is None else of_job
            job.allocated_hyper_node = remembered.get(job.uid, "")
            for sub in job.sub_jobs.values():
                sub.allocated_hyper_node = remembered.get((job.uid, sub.uid), "")
            if tree.ready:
                self._recover(job)

    def _recover(self, job: Job) -> None:
        tree = self.hyper_nodes
        for each in (job, *job.sub_jobs.values()):
            name = each.allocated_hyper_node
            if name and (name not in tree.of or not each.with_status(*ALLOCATED_STATUS)):
                each.allocated_hyper_node = ""
                self.dirty.add(job.uid)
        found = False
        for sub in job.sub_jobs.values():
            if sub.topology is not None and not sub.allocated_hyper_node:
                nodes = [t.node for t in sub.with_status(*ALLOCATED_STATUS) if t.node]
                sub.allocated_hyper_node = tree.lowest_holding(nodes)
                found = found or bool(sub.allocated_hyper_node)
        if job.topology is not None and not job.allocated_hyper_node:
            for sub in job.sub_jobs.values():
                if sub.topology is None and any(t.node for t in sub.with_status(*ALLOCATED_STATUS)):
                    self.rarities.add("hypernode-unknown-after-restart")
        if found or (not job.allocated_hyper_node and job.has_topology()):
            common = ""
            for sub in job.sub_jobs.values():
                if sub.allocated_hyper_node:
                    common = tree.lowest_common(sub.allocated_hyper_node, common)
            if common:
                job.allocated_hyper_node = common
                self.dirty.add(job.uid)

    # --- placements and evictions

    def place(self, task: Task, node: Node, status: str) -> None:
        """`status`: Allocated or Pipelined. Raises NodeError."""
        task.status = status
        node.add_task(task)
        errors = [handler.allocate(task) for handler in self.handlers]
        if any(errors):
            self.unplace(task)
            raise NodeError(next(e for e in errors if e))

    def unplace(self, task: Task) -> None:
        task.status = "Pending"
        self.nodes[task.node].remove_task(task)
        for handler in self.handlers:
            handler.deallocate(task)
        task.node = ""
        task.job_hyper_node = ""

    def start_eviction(self, task: Task) -> None:
        task.status = "Releasing"
        self.nodes[task.node].update_task(task)
        for handler in self.handlers:
            handler.deallocate(task)

    def undo_eviction(self, task: Task) -> None:
        """The task is Running, even if it was only Bound."""
        task.status = "Running"
        self.nodes[task.node].update_task(task)
        for handler in self.handlers:
            handler.allocate(task)

    def on_node(self, node: Node) -> list[Task]:
        """The tasks on a node that belong to a job; Volcano iterates over a map, here the youngest come first."""
        tasks = [self.jobs[t.job].tasks[t.uid] for t in node.tasks.values() if t.job in self.jobs]
        return sorted(tasks, key=lambda t: (t.created, running_number(t.name) or 0, t.key), reverse=True)

    def bind(self, task: Task) -> None:
        """Pass an Allocated task to the cache. Raises NodeError."""
        try:
            self.cluster.add_bind_task(task)
        except NodeError:
            self.rarities.add("bind-rejected")
            raise
        task.status = "Binding"
        self.bound[task.key] = task.node

    def allocate(self, task: Task, node: Node) -> None:
        """Allocate without a statement. Volcano: Session.Allocate. Raises NodeError, and undoes nothing."""
        self.place(task, node, "Allocated")
        job = self.jobs[task.job]
        if self.votes.job_ready(job):
            # Volcano iterates over a map here, and stops at the first rejected task.
            ready = job.with_status("Allocated")
            if len(ready) > 1:
                self.rarities.add("dispatch-order")
            for t in ready:
                self.bind(t)

    # --- the end

    def held_by_queues(self) -> dict[str, Resource]:
        """The allocated resources of jobs, in their queue and its ancestors. Volcano: updateQueueStatus."""
        held = {name: Resource() for name in self.queues}
        for job in self.jobs.values():
            name, seen = job.queue, set()
            while name in held and name not in seen:
                held[name].add(job.allocated())
                seen.add(name)
                if name != ROOT_QUEUE and ROOT_QUEUE in held:
                    name = self.queues[name].parent or ROOT_QUEUE
        return held

    def close(self) -> None:
        for closer in self.closers:
            closer()
        for job in self.jobs.values():
            job.phase = phase(job)
        remembered = self.memory["hyper nodes"]
        for uid in self.dirty:
            remembered[uid] = self.jobs[uid].allocated_hyper_node
            for sub in self.jobs[uid].sub_jobs.values():
                remembered[uid, sub.uid] = sub.allocated_hyper_node


def phase(job: Job) -> str:
    """The phase of a PodGroup at the end of a session."""
    if job.unschedulable and job.with_status("Running"):
        return "Unknown"
    leaving = [t for t in job.with_status("Releasing") if t.node]
    scheduled = len(job.with_status("Running", "Bound", "Failed", "Succeeded")) + len(leaving)
    completed = len(job.with_status("Failed", "Succeeded"))
    if scheduled >= job.min_available:
        return "Completed" if scheduled == completed else "Running"
    return "Inqueue" if job.phase == "Inqueue" else "Pending"
