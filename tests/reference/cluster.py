"""The snapshot that a session opens over, from manifests. Volcano: the cache's event handlers and Snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tests.reference.job import Job
from tests.reference.kube.volumes import RESOURCE, Objects
from tests.reference.node import Node
from tests.reference.task import Task, task_of, timestamp

Manifest = dict[str, Any]


@dataclass(frozen=True)
class Measurement:
    """The average load of a node in percent, and when it was measured. Volcano: ResourceUsage."""

    time: float
    cpu: float
    memory: float


class Queue:
    def __init__(self, manifest: Manifest) -> None:
        spec = manifest.get("spec") or {}
        self.name: str = manifest["metadata"]["name"]
        self.created = timestamp(manifest["metadata"])
        self.weight: int = spec.get("weight", 1)
        self.priority: int = spec.get("priority", 0)
        self.capability: dict[str, Any] = spec.get("capability") or {}
        self.guarantee: dict[str, Any] = (spec.get("guarantee") or {}).get("resource") or {}
        self.deserved: dict[str, Any] = spec.get("deserved") or {}
        self.parent: str = spec.get("parent") or ""
        self.affinity: dict[str, Any] | None = spec.get("affinity")
        self.annotations: dict[str, str] = manifest["metadata"].get("annotations") or {}
        self.reclaimable: bool = spec.get("reclaimable", True)
        self.state: str = (manifest.get("status") or {}).get("state", "")


class Cluster:
    """All objects of the scheduler's cache."""

    def __init__(
        self,
        manifests: Iterable[Manifest],
        default_queue: str = "default",
        usage: Mapping[str, Measurement] | None = None,
    ) -> None:
        self.default_queue = default_queue
        self.usage = usage or {}
        self.by_kind: dict[str, list[Manifest]] = {}
        for m in manifests:
            self.by_kind.setdefault(m["kind"], []).append(m)
        self.storage = Objects(self.by_kind)
        self.nodes: dict[str, Node] = {m["metadata"]["name"]: Node(self._with_limits(m)) for m in self.of("Node")}
        self.queues: dict[str, Queue] = {m["metadata"]["name"]: Queue(m) for m in self.of("Queue")}
        self.tasks: list[Task] = []
        for m in self.of("Pod"):
            # Every pod in a cluster has a scheduler name: a described pod without one belongs to this scheduler.
            if m["spec"].get("schedulerName", "volcano") == "volcano" or m["spec"].get("nodeName"):
                self.tasks.append(task_of(m))
                for name in self.storage.counted(m):
                    self.tasks[-1].resreq.add_scalar(name, 1.0)
        for t in self.tasks:
            # A pod on an unknown node belongs to its job nevertheless. A finished pod is on no node.
            if t.node in self.nodes and t.status not in ("Succeeded", "Failed"):
                self.nodes[t.node].add_task(t)

    def _with_limits(self, node: Manifest) -> Manifest:
        """A node that offers as many volumes of each driver as its CSINode permits, in thousandths like any scalar."""
        drivers = self.storage.drivers_of(node["metadata"]["name"])
        if not drivers:
            return node
        limits = {RESOURCE + d: f"{2**31 - 1 if most is None else most}m" for d, most in drivers.items()}
        status = node.get("status") or {}
        return {**node, "status": {**status, "allocatable": {**(status.get("allocatable") or {}), **limits}}}

    def of(self, kind: str) -> list[Manifest]:
        return self.by_kind.get(kind, [])

    def jobs(self) -> dict[str, Job]:
        """Jobs of existing queues, with copies of their tasks."""
        classes = {m["metadata"]["name"]: m.get("value", 0) for m in self.of("PriorityClass")}
        default = 0
        for m in self.of("PriorityClass"):
            if m.get("globalDefault"):
                default = m.get("value", 0)
        found = {}
        for m in self.of("PodGroup"):
            job = Job(m, self.default_queue)
            if job.queue not in self.queues:
                continue
            job.priority = classes.get(job.priority_class, default)
            for t in self.tasks:
                if t.job == job.uid:
                    job.tasks[t.uid] = replace(t)
            job.divide()
            found[job.uid] = job
        return found

    def copy_of_nodes(self) -> dict[str, Node]:
        copies = {}
        for name, node in self.nodes.items():
            copies[name] = Node(node.manifest)
            for t in node.tasks.values():
                copies[name].add_task(replace(t))
        return copies

    def add_bind_task(self, task: Task) -> None:
        """Pass a bind to the cache, which checks the capacity. Raises NodeError."""
        self.nodes[task.node].add_task(replace(task, status="Binding"))
