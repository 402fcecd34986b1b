"""EventHandlers: what a change of the cluster does to the queue, the plugins and the open bindings. Kubernetes:
eventhandlers.go."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

from volcano_py.api.core import Node
from volcano_py.api.gang import AnyGroup, CompositePodGroup, PodGroup
from volcano_py.scheduler.profiles.attempts.attempt import failure
from volcano_py.scheduler.profiles.attempts.binding import BindingCycles, Stage
from volcano_py.scheduler.profiles.cluster_events import (
    ClaimObjectChanged,
    ClusterChange,
    CompositeChanged,
    GroupChanged,
    NodeChanged,
    NodeReleased,
    ObjectChanged,
    PlaceFreed,
    PodChanged,
)
from volcano_py.scheduler.profiles.groups.queue import GroupedQueue
from volcano_py.scheduler.profiles.groups.tree import least_of
from volcano_py.scheduler.profiles.objects import ObjectKind, key_of
from volcano_py.scheduler.profiles.plugin_api.events import ActionType, ClusterEvent, Kind, node_events, pod_events
from volcano_py.scheduler.profiles.plugin_api.handle import World
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.profile import Profile
from volcano_py.scheduler.profiles.queue import QueuedPod, SchedulingQueue


class EventHandlers:
    """`awaiting`: pods whose attempt waits for the response of another program."""

    def __init__(
        self,
        world: World,
        profiles: Mapping[str, Profile],
        queue: SchedulingQueue,
        cycles: BindingCycles,
        awaiting: MutableMapping[str, QueuedPod],
    ) -> None:
        self._world = world
        self._cluster = world.cluster
        self._profiles = profiles
        self._queue = queue
        self._cycles = cycles
        self._awaiting = awaiting

    def handle(self, event: ClusterChange) -> None:
        """Apply an event; the time is that of the world."""
        match event:
            case NodeChanged(old, new):
                self._node(old, new)
            case NodeReleased(node):
                self._queue.move(ClusterEvent(Kind.NODE, ActionType.TAINT, node, node), self._world.now)
            case PodChanged(old, new):
                self._pod(old, new)
            case PlaceFreed(pod, node):
                self._happened(ClusterEvent(Kind.ASSIGNED_POD, ActionType.DELETE, pod.on(node), None))
            case GroupChanged(key, new):
                self._group(key, new)
            case CompositeChanged(key, new):
                self._composite(key, new)
            case ObjectChanged():
                self._object(event)
            case ClaimObjectChanged():
                self._claim_object(event)

    def _node(self, old: Node | None, new: Node | None) -> None:
        if self._cluster.owns_model:
            old = self._cluster.put_node(old, new)
        if new is None:
            if old is not None:
                self._node_deleted(old)
            return
        for event in (ClusterEvent(Kind.NODE, ActionType.ADD, None, new),) if old is None else node_events(old, new):
            self._happened(event)

    def _node_deleted(self, node: Node) -> None:
        """Pods that were assumed on the node, and whose binding is not being written, are tried again."""
        self._happened(ClusterEvent(Kind.NODE, ActionType.DELETE, node, None))
        name = node.metadata.name
        for cycle in self._cycles:
            if cycle.node == name:
                self._cycles.give_up(cycle, failure(f'node "{name}" was deleted'))
        self._cycles.settle()

    # ---- groups and other objects -----------------------------------------------------------------------

    def _group(self, key: str, new: PodGroup | None) -> None:
        groups = self._cluster.groups
        old = groups.get(key)
        if old is not None and (new is None or old.metadata.uid != new.metadata.uid):
            del groups[key]
            self._groups_changed(old, None)
            self._happened(ClusterEvent(Kind.POD_GROUP, ActionType.DELETE, old, None))
            old = None
        if new is not None:
            groups[key] = new
            self._groups_changed(old, new)
            action = ActionType.ADD if old is None else ActionType.OTHER
            self._happened(ClusterEvent(Kind.POD_GROUP, action, old, new))

    def _composite(self, key: str, new: CompositePodGroup | None) -> None:
        composites = self._cluster.composites
        old = composites.get(key)
        if old is not None and (new is None or old.metadata.uid != new.metadata.uid):
            del composites[key]
            self._groups_changed(old, None)
            old = None
        if new is not None:
            composites[key] = new
            self._groups_changed(old, new)

    def _groups_changed(self, old: AnyGroup | None, new: AnyGroup | None) -> None:
        self._world.tree.changed(old, new)
        if isinstance(self._queue, GroupedQueue):
            fewer = old is not None and new is not None and least_of(new) < least_of(old)
            self._queue.groups_changed(self._world.now, fewer_needed=fewer)

    def _object(self, event: ObjectChanged) -> None:
        manifest = event.manifest
        if event.deleted:
            old = self._world.objects.delete(ObjectKind.of(manifest), key_of(manifest))
            if old is not None:
                self._happened(ClusterEvent(Kind.OBJECT, ActionType.DELETE, old, None))
            return
        old = self._world.objects.set(manifest)
        self._happened(ClusterEvent(Kind.OBJECT, ActionType.ADD if old is None else ActionType.OTHER, old, manifest))

    def _claim_object(self, event: ClaimObjectChanged) -> None:
        kind, old, new = event
        if self._cluster.owns_model:
            old = self._cluster.put_claim_object(kind, old, new)
        action = ActionType.ADD if old is None else ActionType.DELETE if new is None else ActionType.OTHER
        self._happened(ClusterEvent(Kind(kind), action, old, new))

    # ---- pods -------------------------------------------------------------------------------------------

    def _pod(self, old: PodInfo | None, new: PodInfo | None) -> None:
        if old is not None and (new is None or old.pod.metadata.uid != new.pod.metadata.uid):
            self._pod_deleted(old)
            old = None
        if new is None:
            return
        if old is None:
            self._pod_added(new)
        else:
            self._pod_updated(old, new)

    def _pod_added(self, pod: PodInfo) -> None:
        self._cluster.join(pod)
        if pod.node:
            self._cluster.place(pod, pod.node)
            self._happened(ClusterEvent(Kind.ASSIGNED_POD, ActionType.ADD, None, pod))
            return
        self._cluster.see(pod)
        if pod.pod.spec.scheduler_name in self._profiles:
            self._queue.add(pod, self._world.now)
            self._happened(ClusterEvent(Kind.UNSCHEDULED_POD, ActionType.ADD, None, pod))

    def _pod_updated(self, old: PodInfo, new: PodInfo) -> None:
        self._cluster.join(new)
        if new.node:
            self._has_node(old, new)
            return
        self._cluster.see(new)
        if new.key in self._queue:
            self._queue.update(old, new, self._world.now)
            self._cluster.nominate(new, new.pod.status.nominated_node_name)
        elif (cycle := self._cycles.get(new.key)) is not None:
            cycle.queued.pod = new
            self._cluster.place(new, cycle.node)
            if new.terminating:
                self._cycles.undo(cycle)
        elif new.key in self._awaiting:
            self._awaiting[new.key].pod = new

    def _has_node(self, old: PodInfo, new: PodInfo) -> None:
        """A pod is bound, by this scheduler or another."""
        cycle = self._cycles.get(new.key)
        if cycle is not None:
            if cycle.stage is Stage.WRITE and cycle.node == new.node:
                self._cycles.bound(new.key)
            else:
                self._cycles.undo(cycle)
        self._awaiting.pop(new.key, None)
        self._cluster.place(new, new.node)
        if old.node:
            for event in pod_events(Kind.ASSIGNED_POD, old, new):
                self._happened(event)
            return
        self._queue.delete(new.key)
        self._cluster.nominate(new, "")
        self._happened(ClusterEvent(Kind.ASSIGNED_POD, ActionType.ADD, None, new))

    def _pod_deleted(self, pod: PodInfo) -> None:
        self._awaiting.pop(pod.key, None)
        self._world.questions.forget(pod.key)
        self._world.retries.pop(pod.key, None)
        self._cluster.leave(pod)
        self._cluster.nominate(pod, "")
        self._queue.delete(pod.key)
        cycle = self._cycles.get(pod.key)
        if cycle is not None:
            self._cycles.undo(cycle)
        self._cluster.forget(pod)
        if pod.node or cycle is not None or pod.pod.status.nominated_node_name:
            removed = pod if pod.node or cycle is None else pod.on(cycle.node)
            self._happened(ClusterEvent(Kind.ASSIGNED_POD, ActionType.DELETE, removed, None))

    # ---- plugins and queue ------------------------------------------------------------------------------

    def _happened(self, event: ClusterEvent) -> None:
        """Pass an event to plugins, and try the pods again that it may help."""
        for profile in self._profiles.values():
            profile.observe(event)
        self._queue.move(event, self._world.now)
        self._cycles.note(event)
        for queued in self._awaiting.values():
            interests = self._profiles[queued.pod.pod.spec.scheduler_name].interests
            queued.helped_by |= {n for n, found in interests.items() if any(i.helps(queued.pod, event) for i in found)}
        self._cycles.settle()
