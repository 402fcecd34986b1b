"""Cluster: the state that a profile's plugins read, derived from the scheduler's model. Kubernetes: the scheduler's
cache, snapshot and nominator.

The session and the profiles share one model: a pod that either of them has assumed counts for both. `nodes` is updated
from the model's log of changed nodes when it is read, so that no work is done while no pod needs it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from volcano_py.api.core import Node, Pod, PodDisruptionBudget
from volcano_py.api.gang import CompositePodGroup, PodGroup
from volcano_py.scheduler.model.cluster import Cluster as Model
from volcano_py.scheduler.model.jobs.spec_class import SpecClass
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.plan import Bind
from volcano_py.scheduler.profiles.attempts.extended_use import ExtendedUse
from volcano_py.scheduler.profiles.columns import Columns
from volcano_py.scheduler.profiles.plugin_api.node_info import NodeInfo
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo

ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
_LONGEST_LOG = 200_000
"""The number of changes after which the columns are created again."""


class ProfileCluster:
    """Nodes with their pods (bound or assumed), and the other objects that rules read.

    `model`: the model that the cache keeps current. Without it the cluster has its own, which `put_node`,
    `put_claim_object`, `see`, `place` and `unplace` change.
    """

    def __init__(self, model: Model | None = None) -> None:
        self.model = model if model is not None else Model()
        self.namespaces: Mapping[str, Mapping[str, str]] = _NamespaceLabels(self.model)
        """The labels of each namespace."""
        self.groups: dict[str, PodGroup] = {}
        self.composites: dict[str, CompositePodGroup] = {}
        self.members: dict[str, dict[str, PodInfo]] = {}
        """Pod group (which may not exist) to the pods that name it."""
        self.extended = ExtendedUse(self.model)
        self.owns_model = model is None
        """Whether events change the model; otherwise the cache does."""
        self._nodes: dict[str, NodeInfo] = {}
        self._columns: Columns | None = None
        self._with_affinity: dict[str, NodeInfo] = {}
        self._seen = -1
        self._infos: dict[str, PodInfo] = {}
        self._moved: dict[str, None] = {}
        """Nodes with moves of the open session."""
        self._nominated: dict[str, tuple[str, PodInfo]] = {}
        self._nominated_to: dict[str, dict[str, PodInfo]] = {}
        self._within: dict[str, NodeInfo] | None = None
        """The only nodes that count, while a placement is tried."""
        self._columns_within: Columns | None = None
        self.without_images = False
        """Whether images on nodes do not count, as in kube-scheduler while a root group tries evictions."""

    @property
    def nodes(self) -> dict[str, NodeInfo]:
        """All nodes, by name, with their current state."""
        if self._seen != self.model.node_changes.position:
            self._catch_up()
        return self._nodes if self._within is None else self._within

    @property
    def nodes_everywhere(self) -> Mapping[str, NodeInfo]:
        """All nodes, even while a placement is tried."""
        return self.nodes if self._within is None else self._nodes

    @property
    def columns(self) -> Columns:
        """All nodes in the order in which they are tried, as arrays."""
        nodes = self.nodes
        if self._within is not None:
            if self._columns_within is None:
                self._columns_within = Columns(_zones_in_turn(nodes.values()), self.model)
            return self._columns_within
        columns = self._columns
        if columns is None or len(columns.log) > _LONGEST_LOG:
            columns = self._columns = Columns(_zones_in_turn(nodes.values()), self.model)
        elif columns.generation != self.model.nodes.generation:
            columns.renew()
        self.extended.touch(columns)
        return columns

    def nodes_with_affinity(self) -> Collection[NodeInfo]:
        """The nodes with pods that have affinity terms between pods."""
        nodes = self.nodes
        if self._within is not None:
            return [n for n in self._with_affinity.values() if n.name in nodes]
        return self._with_affinity.values() if nodes else ()

    def class_of(self, pod: PodInfo) -> SpecClass:
        """The class of a pod: no rule about nodes distinguishes the pods of a class."""
        task = self.model.tasks.get(pod.key)
        return task.spec_class if task is not None and task.pod is pod.pod else self.model.classes.of(pod.pod)

    def queue_of(self, pod: PodInfo) -> str:
        """The queue of the pod's PodGroup; empty if it has none."""
        task = self.model.tasks.get(pod.key)
        job = self.model.jobs.get(task.job) if task is not None else None
        return job.queue if job is not None and job.pod_group is not None and not job.shadow else ""

    @property
    def budgets(self) -> Mapping[str, PodDisruptionBudget]:
        return self.model.others.get("PodDisruptionBudget", {})

    def labels_of(self, namespace: str) -> Mapping[str, str]:
        """A namespace's labels; empty if there is no such object."""
        return self.namespaces.get(namespace, {})

    def in_order(self) -> list[NodeInfo]:
        """All nodes, one of each zone in turn."""
        return self.columns.infos

    @property
    def order(self) -> dict[str, list[str]]:
        """Nodes and their pods, in the order that decides between equal ones."""
        return {name: list(info.pods) for name, info in self.nodes_everywhere.items()}

    def arrange(self, order: Mapping[str, Iterable[str]]) -> None:
        """Have the `order` of another scheduler; what it lacks follows."""
        known = self.nodes
        self._nodes = {name: known[name] for name in order if name in known} | known
        for name, pods in order.items():
            if name in known:
                known[name].arrange(pods)
        self._columns = None

    @contextmanager
    def within(self, names: Collection[str] | None) -> Iterator[None]:
        """Have only some nodes, until the end of the block; None: no change. Kubernetes: a placement is assumed in the
        snapshot."""
        before = self._within
        nodes = self.nodes
        if names is not None and len(names) != len(nodes):
            self._within = {name: info for name, info in nodes.items() if name in names}
            self._columns_within = None
        try:
            yield
        finally:
            self._within, self._columns_within = before, None

    # ---- nodes and pods ---------------------------------------------------------------------------------

    def put_node(self, old: Node | None, new: Node | None) -> Node | None:
        """Put a node into the model, or remove `old`; returns the node that it had. The pods of a removed node count
        again when it is created again."""
        present = new if new is not None else old
        known = self.nodes.get(present.metadata.name) if present is not None else None
        if new is not None:
            self.model.upsert("Node", new)
        elif known is not None:
            self.model.remove("Node", "", known.name)
        return known.node if known is not None else None

    def put_claim_object(self, kind: str, old: Any, new: Any) -> Any:
        """Put an object of volumes or devices into the model, or remove `old`; returns the object that it had. Raises
        ValueError."""
        metadata = (old if new is None else new).metadata
        known = self.model.others.get(kind, {}).get(metadata.key)
        if new is not None:
            self.model.upsert(kind, new)
        elif known is not None:
            self.model.remove(kind, metadata.namespace, metadata.name)
        return known

    def place(self, pod: PodInfo, node: str) -> None:
        """Count a pod on a node: it is bound there, or assumed to be; `unplace` undoes it."""
        self._infos[pod.key] = pod
        if self.owns_model:
            task = self.model.tasks.get(pod.key)
            if task is None or task.pod is not pod.pod:
                self.model.upsert("Pod", pod.pod)
        if pod.node != node:
            self.model.assume(_binding(pod, node))

    def unplace(self, pod: PodInfo, node: str) -> None:
        """Undo `place`."""
        self.model.forget(_binding(pod, node))

    def forget(self, pod: PodInfo) -> None:
        """Remove a deleted pod."""
        if self.owns_model:
            self.model.remove("Pod", pod.namespace, pod.name)

    def info(self, pod: Pod) -> PodInfo:
        """A pod in the form that rules read."""
        known = self._infos.get(pod.key)
        return known if known is not None and known.pod is pod else PodInfo(pod)

    def see(self, pod: PodInfo) -> None:
        """Add a pod that waits for a node."""
        if self.owns_model:
            self.model.upsert("Pod", pod.pod)

    def pods(self) -> Iterator[PodInfo]:
        """All pods, on nodes or waiting, of every scheduler."""
        return (self.info(task.pod) for task in self.model.tasks.values())

    def pod(self, key: str) -> PodInfo | None:
        task = self.model.tasks.get(key)
        return self.info(task.pod) if task is not None else None

    # ---- groups -----------------------------------------------------------------------------------------

    def join(self, pod: PodInfo) -> None:
        """Count a pod as a member of its group, if it names one."""
        if pod.group:
            self.members.setdefault(pod.group, {})[pod.key] = pod

    def leave(self, pod: PodInfo) -> None:
        if pod.group:
            members = self.members.get(pod.group, {})
            members.pop(pod.key, None)
            if not members:
                self.members.pop(pod.group, None)

    def placed(self, group: str) -> int:
        """How many members of a group are bound or assumed."""
        return sum(self.is_placed(key) for key in self.members.get(group, {}))

    def is_placed(self, key: str) -> bool:
        """Whether a pod is bound to, or assumed on, an existing node."""
        task = self.model.tasks.get(key)
        return task is not None and task.takes_capacity and task.node in self.model.nodes.index

    # ---- nominations ------------------------------------------------------------------------------------

    def nominate(self, pod: PodInfo, node: str) -> None:
        """Count the pod on the node for other pods of lower or equal priority; an empty node undoes it."""
        old = self._nominated.pop(pod.key, None)
        if old is not None:
            here = self._nominated_to[old[0]]
            del here[pod.key]
            if not here:
                del self._nominated_to[old[0]]
            self._touch(old[0])
        if node:
            self._nominated[pod.key] = (node, pod)
            self._nominated_to.setdefault(node, {})[pod.key] = pod
            self._touch(node)

    def nominated_node(self, pod: PodInfo) -> str:
        """The node to which a pod of a profile is nominated, or empty."""
        known = self._nominated.get(pod.key)
        return known[0] if known is not None else ""

    @property
    def nominations(self) -> dict[str, str]:
        """The nominated node of each pod of a profile that has one."""
        return {key: node for key, (node, _) in self._nominated.items()}

    def nominated_nodes(self) -> Collection[str]:
        """The nodes to which pods are nominated."""
        return self._nominated_to.keys() | self.model.nominations.at.keys()

    def _touch(self, node: str) -> None:
        for columns in (self._columns, self._columns_within):
            if columns is not None:
                columns.touch(node)

    def nominated(self, node: str) -> Iterator[PodInfo]:
        """The pods that are nominated to a node: those of profiles, and tasks for which the session has evicted."""
        yield from self._nominated_to.get(node, {}).values()
        for key in self.model.nominations.at.get(node, ()):
            if key not in self._nominated:
                task = self.model.tasks.get(key)
                job = self.model.jobs.get(task.job) if task is not None else None
                if task is not None and job is not None and job.pod_group is not None:
                    yield self.info(task.pod)

    # ---- following the model ----------------------------------------------------------------------------

    def _catch_up(self) -> None:
        """Update the nodes that have changed in the model."""
        model = self.model
        changed = model.node_changes.since(self._seen) if self._seen >= 0 else None
        if changed is None:
            changed = {*self._nodes, *model.nodes.index}
        self._seen = model.node_changes.position
        for name in [n for n in changed if n not in model.nodes.index]:
            removed = self._nodes.pop(name, None)
            if removed is not None:
                self._update_pods(removed, {})
                self._with_affinity.pop(name, None)
                self._columns = None
        for name in sorted(changed & model.nodes.index.keys(), key=model.nodes.index.__getitem__):
            self._follow(name)

    def _follow(self, name: str) -> None:
        """Update a node as the model has it."""
        node = self.model.nodes.objects[self.model.nodes.index[name]]
        info = self._nodes.get(name)
        if info is None:
            info = self._nodes[name] = NodeInfo(node)
            self._columns = None
        elif info.node is not node:
            zone = _zone(info)
            info.update(node)
            if _zone(info) != zone:
                self._columns = None
        self._update_pods(info, self.model.on_node.get(name, {}))
        self._changed(info)

    def _changed(self, info: NodeInfo) -> None:
        """The pods of a node have changed."""
        if info.with_affinity:
            self._with_affinity[info.name] = info
        else:
            self._with_affinity.pop(info.name, None)
        for columns in (self._columns, self._columns_within):
            if columns is not None and info.name in columns.index:
                columns.update(info)

    # ---- following a session ----------------------------------------------------------------------------

    def move(self, task: Task, node: str, sign: int) -> None:
        """Count a pod on a node (+1), or no longer (-1), as the open session does; `end_moves` undoes it."""
        self.count(self.info(task.pod), node, sign)

    def count(self, pod: PodInfo, node: str, sign: int) -> None:
        """The same for a pod in the form that rules read."""
        info = self.nodes_everywhere.get(node)
        if info is None:
            return
        if sign > 0:
            info.add(pod)
        else:
            info.remove(pod)
        self._moved[node] = None
        self._changed(info)

    def end_moves(self) -> None:
        """The session is closed: all nodes are as the model has them."""
        moved, self._moved = self._moved, {}
        for name in moved:
            if name in self._nodes and name in self.model.nodes.index:
                self._follow(name)

    def _update_pods(self, node: NodeInfo, tasks: Mapping[str, Task]) -> None:
        for key in [k for k in node.pods if k not in tasks]:
            removed = node.pods[key]
            node.remove(removed)
            if self._infos.get(key) is removed:
                del self._infos[key]
        for key, task in tasks.items():
            known = node.pods.get(key)
            if known is None or known.pod is not task.pod:
                if known is not None:
                    node.remove(known)
                info = self._infos[key] = self.info(task.pod)
                node.add(info)


def _zone(info: NodeInfo) -> tuple[str, str]:
    return info.labels.get(REGION, ""), info.labels.get(ZONE, "")


def _zones_in_turn(infos: Iterable[NodeInfo]) -> list[NodeInfo]:
    zones: dict[tuple[str, str], list[NodeInfo]] = {}
    for info in infos:
        zones.setdefault(_zone(info), []).append(info)
    rows = max((len(z) for z in zones.values()), default=0)
    return [z[i] for i in range(rows) for z in zones.values() if i < len(z)]


class _NamespaceLabels(Mapping[str, Mapping[str, str]]):
    """The labels of the model's Namespaces."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def __getitem__(self, name: str) -> Mapping[str, str]:
        labels: Mapping[str, str] = self._objects()[name].metadata.labels or {}
        return labels

    def __iter__(self) -> Iterator[str]:
        return iter(self._objects())

    def __len__(self) -> int:
        return len(self._objects())

    def _objects(self) -> Mapping[str, Any]:
        return self._model.others.get("Namespace", {})


def _binding(pod: PodInfo, node: str) -> Bind:
    return Bind(pod.namespace, pod.name, pod.pod.metadata.uid, node, "")
