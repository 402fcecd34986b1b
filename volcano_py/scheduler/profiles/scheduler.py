"""PodScheduler: tries one pod after another and returns decisions. Kubernetes: scheduler.go, eventhandlers.go.

The caller reports the events of the cluster, with the time, and carries out the decisions, whose results it reports as
well. Decisions that follow from an event are returned by the next call of `attempt` or `tick`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from volcano_py.api.core import Node
from volcano_py.api.gang import AnyGroup, CompositePodGroup, PodGroup
from volcano_py.scheduler.model.cluster import Cluster as Model
from volcano_py.scheduler.profiles.attempts.attempt import AnswerPending, Found, NotFound, failure
from volcano_py.scheduler.profiles.attempts.binding import BindingCycle, BindingCycles, Stage
from volcano_py.scheduler.profiles.attempts.group_cycle import GroupCycles
from volcano_py.scheduler.profiles.cluster import ProfileCluster
from volcano_py.scheduler.profiles.configuration import FEATURES, ProfilesConfiguration
from volcano_py.scheduler.profiles.decisions import SCHEDULER_ERROR, UNSCHEDULABLE, Decision, EvictPod, Fail, Nominate
from volcano_py.scheduler.profiles.groups.cycles import RootCycles
from volcano_py.scheduler.profiles.groups.queue import GroupedQueue, QueuedGroup
from volcano_py.scheduler.profiles.groups.tree import least_of
from volcano_py.scheduler.profiles.objects import Manifest, ObjectKind, key_of
from volcano_py.scheduler.profiles.observations import Observations
from volcano_py.scheduler.profiles.plugin_api.calls import Answer
from volcano_py.scheduler.profiles.plugin_api.events import ActionType, ClusterEvent, Kind, node_events, pod_events
from volcano_py.scheduler.profiles.plugin_api.handle import WaitingPod, World
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.profile import Profile
from volcano_py.scheduler.profiles.queue import Again, QueuedPod, SchedulingQueue
from volcano_py.scheduler.profiles.searches import Searches
from volcano_py.scheduler.profiles.sessions.session_rules import SessionRules


class PodScheduler:
    """Several profiles over one cluster and one queue. `model`: see `ProfileCluster`. Times are in seconds and never
    decrease."""

    def __init__(
        self,
        config: ProfilesConfiguration,
        features: frozenset[str] = FEATURES,
        model: Model | None = None,
        observations: Observations | None = None,
    ) -> None:
        """Raises ConfigurationError if a plugin cannot be constructed."""
        self._decisions: list[Decision] = []
        self._world = World(ProfileCluster(model), self._decisions.append, features, config.release, observations)
        self.cluster = self._world.cluster
        self._cycles = self._world.waiting = BindingCycles(self._world, self._lost)
        self._profiles = {p.name: Profile(p, config, self._world) for p in config.profiles}
        self.searches = Searches(self._world, self._profiles)
        early = "SchedulerPopFromBackoffQ" in features
        self.session_rules = SessionRules(self._profiles.values(), config.registry, self.cluster)
        """The rules of the profiles for pods that the session places."""
        timing = (config.initial_backoff, config.max_backoff, early)
        self._gangs = config.release.gang_gate in features
        self._root_cycles: RootCycles | None = None
        if self._gangs and config.release.whole_groups:
            grouped = GroupedQueue(self._profiles, *timing, self._world.emit, self._world.tree)
            self.queue: SchedulingQueue = grouped
            self._root_cycles = RootCycles(
                self._world, self._world.tree, self._profiles, grouped, self._cycles, self._report, self._evict
            )
        else:
            self.queue = SchedulingQueue(self._profiles, *timing, self._world.emit)
        self.queue.on_enter = lambda pod: self.cluster.nominate(pod, pod.pod.status.nominated_node_name)
        self._group_cycles = GroupCycles(self._profiles, self._cycles, self.cluster, self._failed)
        self._awaiting: dict[str, QueuedPod] = {}
        """Pods whose cycle waits for the response of another program."""

    @property
    def reads(self) -> frozenset[ObjectKind]:
        """The kinds whose objects the plugins read; report them to `set_object`."""
        return frozenset(kind for p in self._profiles.values() for kind in p.reads)

    @property
    def needs_events(self) -> bool:
        """Whether an event can matter now: a pod waits, or a plugin keeps a cache."""
        return bool(len(self)) or any(p.observes for p in self._profiles.values())

    @property
    def has_decisions(self) -> bool:
        """Whether an event had consequences that the next call of `attempt` returns."""
        return bool(self._decisions)

    def __len__(self) -> int:
        """The pods that wait for a node, for Permit, for a response, or for the end of their binding."""
        return len(self.queue) + len(self._cycles) + len(self._awaiting)

    def __contains__(self, key: str) -> bool:
        """Whether a pod waits for a node, or for the end of its binding."""
        return key in self.queue or key in self._awaiting or self._cycles.get(key) is not None

    # ---- events of the cluster --------------------------------------------------------------------------

    def set_node(self, node: Node, now: float) -> None:
        """A node was created or has changed."""
        known = self.cluster.nodes.get(node.metadata.name)
        old = known.node if known is not None else None
        self.cluster.set_node(node)
        self.node_changed(old, node, now)

    def node_changed(self, old: Node | None, new: Node, now: float) -> None:
        """A node that the model already has was created or has changed."""
        for event in (ClusterEvent(Kind.NODE, ActionType.ADD, None, new),) if old is None else node_events(old, new):
            self._happened(event, now)

    def node_released(self, node: Node, now: float) -> None:
        """A node is no longer held: pods for which it was rejected are tried again."""
        self._world.now = now
        self.queue.move(ClusterEvent(Kind.NODE, ActionType.TAINT, node, node), now)

    def delete_node(self, name: str, now: float) -> None:
        """A node was deleted."""
        known = self.cluster.nodes.get(name)
        if known is not None:
            self.cluster.delete_node(name)
            self.node_deleted(known.node, now)

    def node_deleted(self, node: Node, now: float) -> None:
        """A node was deleted that the model does not have any more. Pods that were assumed on it, and whose binding is
        not being written, are tried again."""
        self._happened(ClusterEvent(Kind.NODE, ActionType.DELETE, node, None), now)
        name = node.metadata.name
        for cycle in self._cycles:
            if cycle.node == name:
                self._cycles.give_up(cycle, failure(f'node "{name}" was deleted'))
        self._cycles.settle()

    def set_group(self, group: PodGroup, now: float) -> None:
        """A PodGroup was created or has changed."""
        old = self.cluster.groups.get(group.key)
        if old is not None and old.metadata.uid != group.metadata.uid:
            self.delete_group(group.key, now)
            old = None
        self.cluster.groups[group.key] = group
        self._groups_changed(old, group, now)
        self._happened(
            ClusterEvent(Kind.POD_GROUP, ActionType.ADD if old is None else ActionType.OTHER, old, group), now
        )

    def delete_group(self, key: str, now: float) -> None:
        """A PodGroup was deleted."""
        old = self.cluster.groups.pop(key, None)
        if old is not None:
            self._groups_changed(old, None, now)
            self._happened(ClusterEvent(Kind.POD_GROUP, ActionType.DELETE, old, None), now)

    def set_composite(self, group: CompositePodGroup, now: float) -> None:
        """A CompositePodGroup was created or has changed."""
        old = self.cluster.composites.get(group.key)
        if old is not None and old.metadata.uid != group.metadata.uid:
            self.delete_composite(group.key, now)
            old = None
        self.cluster.composites[group.key] = group
        self._groups_changed(old, group, now)

    def delete_composite(self, key: str, now: float) -> None:
        """A CompositePodGroup was deleted."""
        old = self.cluster.composites.pop(key, None)
        if old is not None:
            self._groups_changed(old, None, now)

    def _groups_changed(self, old: AnyGroup | None, new: AnyGroup | None, now: float) -> None:
        self._world.tree.changed(old, new)
        if isinstance(self.queue, GroupedQueue):
            fewer = old is not None and new is not None and least_of(new) < least_of(old)
            self.queue.groups_changed(now, fewer_needed=fewer)

    def set_object(self, manifest: Manifest, now: float) -> None:
        """An object of a kind in `reads` was created or has changed."""
        old = self._world.objects.set(manifest)
        self._happened(
            ClusterEvent(Kind.OBJECT, ActionType.ADD if old is None else ActionType.OTHER, old, manifest), now
        )

    def delete_object(self, manifest: Manifest, now: float) -> None:
        """An object of a kind in `reads` was deleted."""
        old = self._world.objects.delete(ObjectKind.of(manifest), key_of(manifest))
        if old is not None:
            self._happened(ClusterEvent(Kind.OBJECT, ActionType.DELETE, old, None), now)

    def set_claim_object(self, kind: str, new: Any, now: float) -> None:
        """An object of volumes or devices (`model.claims.pod_claims.KINDS`) was created or has changed.

        Raises ValueError."""
        old = self.cluster.model.others.get(kind, {}).get(new.metadata.key)
        self.cluster.model.upsert(kind, new)
        self.claim_object_changed(kind, old, new, now)

    def delete_claim_object(self, kind: str, key: str, now: float) -> None:
        """An object of volumes or devices was deleted."""
        old = self.cluster.model.others.get(kind, {}).get(key)
        if old is not None:
            self.cluster.model.remove(kind, old.metadata.namespace, old.metadata.name)
            self.claim_object_changed(kind, old, None, now)

    def claim_object_changed(self, kind: str, old: Any, new: Any, now: float) -> None:
        """An object that the model already has was created (`old` is None), has changed, or was deleted (`new` is
        None)."""
        action = ActionType.ADD if old is None else ActionType.DELETE if new is None else ActionType.OTHER
        self._happened(ClusterEvent(Kind(kind), action, old, new), now)

    def add_pod(self, pod: PodInfo, now: float) -> None:
        self._world.now = now
        self.cluster.join(pod)
        if pod.node:
            self.cluster.place(pod, pod.node)
            self._happened(ClusterEvent(Kind.ASSIGNED_POD, ActionType.ADD, None, pod), now)
            return
        self.cluster.see(pod)
        if pod.pod.spec.scheduler_name in self._profiles:
            self.queue.add(pod, now)
            self._happened(ClusterEvent(Kind.UNSCHEDULED_POD, ActionType.ADD, None, pod), now)

    def update_pod(self, old: PodInfo, new: PodInfo, now: float) -> None:
        """A pod has changed; it may have been bound."""
        if old.pod.metadata.uid != new.pod.metadata.uid:
            self.delete_pod(old, now)
            self.add_pod(new, now)
            return
        self._world.now = now
        self.cluster.join(new)
        if new.node:
            self._has_node(old, new, now)
            return
        self.cluster.see(new)
        if new.key in self.queue:
            self.queue.update(old, new, now)
            self.cluster.nominate(new, new.pod.status.nominated_node_name)
        elif (cycle := self._cycles.get(new.key)) is not None:
            cycle.queued.pod = new
            self.cluster.place(new, cycle.node)
            if new.terminating:
                self._cycles.undo(cycle)
        elif new.key in self._awaiting:
            self._awaiting[new.key].pod = new

    def delete_pod(self, pod: PodInfo, now: float) -> None:
        self._world.now = now
        self._awaiting.pop(pod.key, None)
        self._world.questions.forget(pod.key)
        self._world.retries.pop(pod.key, None)
        self.cluster.leave(pod)
        self.cluster.nominate(pod, "")
        self.queue.delete(pod.key)
        cycle = self._cycles.get(pod.key)
        if cycle is not None:
            self._cycles.undo(cycle)
        self.cluster.forget(pod)
        if pod.node or cycle is not None or pod.pod.status.nominated_node_name:
            removed = pod if pod.node or cycle is None else pod.on(cycle.node)
            self._happened(ClusterEvent(Kind.ASSIGNED_POD, ActionType.DELETE, removed, None), now)

    def place_freed(self, pod: PodInfo, node: str, now: float) -> None:
        """A pod of the session was assumed on a node and is not bound there: its capacity is released."""
        self._happened(ClusterEvent(Kind.ASSIGNED_POD, ActionType.DELETE, pod.on(node), None), now)

    def bind_result(self, key: str, error: str, now: float, uid: str = "") -> list[Decision]:
        """A binding was written (`error` is empty), or failed. `uid`: results for a pod with another UID are
        ignored."""
        self._world.now = now
        cycle = self._cycles.get(key)
        self._world.claims.settle(uid or (cycle.pod.pod.metadata.uid if cycle is not None else ""), written=not error)
        if cycle is not None and cycle.stage is Stage.WRITE and uid in ("", cycle.pod.pod.metadata.uid):
            if error:
                self._cycles.fail(cycle, failure(f"binding rejected: {error}"))
            else:
                self._cycles.bound(key)
        return self._answer()

    def rules_for_session(self, now: float, closed: Collection[str] = ()) -> SessionRules:
        """The rules of the profiles for pods that a session places, which begins now. `closed`: plugins that are not
        called: their filters reject all nodes."""
        self._world.now = now
        self.session_rules.closed = frozenset(closed)
        return self.session_rules

    def bound_by_session(self, pod: PodInfo, node: str, now: float) -> list[Decision]:
        """A pod of a profile that a session has placed is bound: plugins are called at PostBind."""
        self._world.now = now
        self.session_rules.bound(pod, node)
        return self._answer()

    # ---- decisions --------------------------------------------------------------------------------------

    def attempt(self, now: float) -> list[Decision] | None:
        """Try the next pod, or the next gang; None if there is nothing to try now."""
        self._world.now = now
        queued = self.queue.pop(now)
        if queued is None:
            return self._answer() or None
        if queued.pod.terminating:
            return self._answer()
        if self._root_cycles is not None and isinstance(queued, QueuedGroup):
            self._root_cycles.run(queued)
            return self._answer()
        if self._gangs and queued.pod.group:
            members = [queued, *self.queue.take_group(queued.pod.group, now)]
            self._group_cycles.run(members, now)
            return self._answer()
        profile = self._profiles[queued.pod.pod.spec.scheduler_name]
        found = self.searches.find(profile, queued.pod)
        if isinstance(found, AnswerPending):
            self._awaiting[queued.pod.key] = queued
            return self._answer()
        self._world.questions.forget(queued.pod.key)
        if isinstance(found, Found):
            self._cycles.start(queued, profile, found)
        else:
            self._failed(queued, found)
        return self._answer()

    def tick(self, now: float) -> list[Decision]:
        """To be called at every whole second, or at `next_deadline`: ends back-offs and waits at Permit."""
        self._world.now = now
        self._cycles.expire()
        self.queue.tick(now)
        retries = self._world.retries
        for key in [k for k, at in retries.items() if at <= now]:
            del retries[key]
            self.queue.activate(key, now)
        return self._answer()

    def next_deadline(self) -> float | None:
        """The time before which `tick` has no effect; None: before the next event."""
        times = (self._cycles.next_deadline(), self.queue.next_deadline(), *self._world.retries.values())
        return min((t for t in times if t is not None), default=None)

    def waiting_pods(self) -> list[WaitingPod]:
        """The pods that Permit holds."""
        return self._cycles.waiting()

    def allow(self, key: str, plugin: str, now: float) -> list[Decision]:
        """On behalf of a plugin, let a waiting pod continue."""
        self._world.now = now
        self._cycles.allow(key, plugin)
        return self._answer()

    def reject(self, key: str, plugin: str, message: str, now: float) -> list[Decision]:
        """On behalf of a plugin, reject a waiting pod."""
        self._world.now = now
        self._cycles.reject(key, plugin, message)
        return self._answer()

    def answered(self, number: str, answer: Answer, now: float) -> list[Decision]:
        """Process the outcome of an `Ask`: the pod continues."""
        self._world.now = now
        key = self._world.questions.take(number, answer)
        queued = self._awaiting.pop(key, None)
        if queued is not None:
            self.queue.put_back(queued)
        self.queue.reconsider(key, now)
        self._cycles.resume(key)
        return self._answer()

    def close(self, now: float) -> list[Decision]:
        """End all cycles whose binding is not being written, before another scheduler takes over."""
        self._world.now = now
        for cycle in self._cycles:
            if cycle.stage is not Stage.WRITE:
                self._cycles.undo(cycle)
        return self._answer()

    def _answer(self) -> list[Decision]:
        self._cycles.settle()
        decisions = list(self._decisions)
        self._decisions.clear()
        return decisions

    def _happened(self, event: ClusterEvent, now: float) -> None:
        """Pass an event to plugins, and try the pods again that it may help."""
        self._world.now = now
        for profile in self._profiles.values():
            profile.observe(event)
        self.queue.move(event, now)
        self._cycles.note(event)
        for queued in self._awaiting.values():
            interests = self._profiles[queued.pod.pod.spec.scheduler_name].interests
            queued.helped_by |= {n for n, found in interests.items() if any(i.helps(queued.pod, event) for i in found)}
        self._cycles.settle()

    def _has_node(self, old: PodInfo, new: PodInfo, now: float) -> None:
        """A pod is bound, by this scheduler or another."""
        cycle = self._cycles.get(new.key)
        if cycle is not None:
            if cycle.stage is Stage.WRITE and cycle.node == new.node:
                self._cycles.bound(new.key)
            else:
                self._cycles.undo(cycle)
        self._awaiting.pop(new.key, None)
        self.cluster.place(new, new.node)
        if old.node:
            for event in pod_events(Kind.ASSIGNED_POD, old, new):
                self._happened(event, now)
            return
        self.queue.delete(new.key)
        self.cluster.nominate(new, "")
        self._happened(ClusterEvent(Kind.ASSIGNED_POD, ActionType.ADD, None, new), now)

    def _failed(self, queued: QueuedPod, why: NotFound, again: Again = Again.AS_REJECTED) -> None:
        """Return a pod to the queue; report why, the nomination, and the evictions that follow from PostFilter."""
        pod = queued.pod
        if not queued.helped_by.isdisjoint(why.rejected_by):
            again = Again.SOON
        queued.helped_by = set()
        self.queue.fail(queued, self._world.now, why.rejected_by, again)
        self._report(pod, why)

    def _report(self, pod: PodInfo, why: NotFound) -> None:
        """Report why a pod was rejected, the nomination, and the evictions that follow from PostFilter."""
        self._decisions.append(Fail(pod, why.message, SCHEDULER_ERROR if why.error else UNSCHEDULABLE))
        if why.nominated is None:
            self.cluster.nominate(pod, pod.pod.status.nominated_node_name)
            return
        if why.nominated != pod.pod.status.nominated_node_name:
            self._decisions.append(Nominate(pod, why.nominated))
        if why.victims:
            for other in list(self.cluster.nominated(why.nominated)):
                if other.priority < pod.priority and other.key != pod.key:
                    self.cluster.nominate(other, "")
                    self._decisions.append(Nominate(other, ""))
        self.cluster.nominate(pod, why.nominated)
        for victim in why.victims:
            self._evict(victim, pod)

    def _evict(self, victim: PodInfo, preemptor: PodInfo, for_group: bool = False) -> None:
        """Evict a pod; one that is not bound yet is tried again instead."""
        cycle = self._cycles.get(victim.key)
        if cycle is not None and cycle.stage is not Stage.WRITE:
            self._cycles.give_up(cycle, failure(f"preempted by {preemptor.key} on node {cycle.node}"))
        else:
            self._decisions.append(EvictPod(victim, preemptor, for_group))

    def _lost(self, cycle: BindingCycle, why: NotFound) -> None:
        """A binding cycle has failed: its capacity is released."""
        freed = ClusterEvent(Kind.ASSIGNED_POD, ActionType.DELETE, cycle.pod.on(cycle.node), None)
        self.queue.move(freed, self._world.now)
        self._failed(cycle.queued, why, Again.SOON if cycle.helped else Again.AS_REJECTED)
