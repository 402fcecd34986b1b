"""PodScheduler: tries one pod after another and answers with decisions. Kubernetes: scheduler.go, eventhandlers.go.

The caller reports what happens in the cluster, with the time, and carries out the decisions; it reports these, too.
"""

from __future__ import annotations

from volcano_py.api.core import Node
from volcano_py.api.gang import PodGroup
from volcano_py.scheduler.model.cluster import Cluster as Model
from volcano_py.scheduler.profiles.attempt import Found, NotFound, find
from volcano_py.scheduler.profiles.cluster import Cluster
from volcano_py.scheduler.profiles.configuration import FEATURES, Configuration
from volcano_py.scheduler.profiles.cycle_state import CycleState
from volcano_py.scheduler.profiles.decisions import Bind, Decision, Evict, Fail, Nominate
from volcano_py.scheduler.profiles.events import Action, Event, Kind, node_events, pod_events
from volcano_py.scheduler.profiles.pod_info import PodInfo
from volcano_py.scheduler.profiles.profile import Profile
from volcano_py.scheduler.profiles.queue import QueuedPod, SchedulingQueue
from volcano_py.scheduler.profiles.status import Code, Status

_GANG = "GangScheduling"
_GROUP_FAILED = "pod group is unschedulable"
_ONLY_WAITS = "one or more plugins asked to wait and no plugin rejected pod"


class PodScheduler:
    """Several profiles over one cluster and one queue. `model`: see `Cluster`."""

    def __init__(self, config: Configuration, features: frozenset[str] = FEATURES, model: Model | None = None) -> None:
        self.cluster = Cluster(model)
        self._profiles = {p.name: Profile(p, self.cluster) for p in config.profiles}
        early = "SchedulerPopFromBackoffQ" in features
        self.queue = SchedulingQueue(self._profiles, config.initial_backoff, config.max_backoff, early)
        self.queue.on_enter = lambda pod: self.cluster.nominate(pod, pod.pod.status.nominated_node_name)
        self._gangs = _GANG in features

    def set_node(self, node: Node, now: float) -> None:
        """A node is new or has changed."""
        known = self.cluster.nodes.get(node.metadata.name)
        old = known.node if known is not None else None
        self.cluster.set_node(node)
        self.node_changed(old, node, now)

    def node_changed(self, old: Node | None, new: Node, now: float) -> None:
        """A node that the model has already is new, or has changed."""
        if old is None:
            self.queue.move(Event(Kind.NODE, Action.ADD, None, new), now)
            return
        for event in node_events(old, new):
            self.queue.move(event, now)

    def delete_node(self, name: str, now: float) -> None:
        known = self.cluster.nodes.get(name)
        if known is not None:
            self.cluster.delete_node(name)
            self.node_deleted(known.node, now)

    def node_deleted(self, node: Node, now: float) -> None:
        """A node is gone that the model does not have any more."""
        self.queue.move(Event(Kind.NODE, Action.DELETE, node, None), now)

    def set_group(self, group: PodGroup, now: float) -> None:
        """A PodGroup is new or has changed."""
        new = group.key not in self.cluster.groups
        self.cluster.groups[group.key] = group
        if new:
            self.queue.move(Event(Kind.POD_GROUP, Action.ADD, None, group), now)

    def add_pod(self, pod: PodInfo, now: float) -> None:
        self.cluster.join(pod)
        if pod.node:
            self.cluster.place(pod, pod.node)
            self.queue.move(Event(Kind.ASSIGNED_POD, Action.ADD, None, pod), now)
        elif pod.pod.spec.scheduler_name in self._profiles:
            self.queue.add(pod, now)
            if pod.group:
                self.queue.move(Event(Kind.UNSCHEDULED_POD, Action.ADD, None, pod), now)

    def update_pod(self, old: PodInfo, new: PodInfo, now: float) -> None:
        """A pod has changed; it may have been bound."""
        self.cluster.join(new)
        if not new.node:
            if new.key in self.queue:
                self.queue.update(old, new, now)
                self.cluster.nominate(new, new.pod.status.nominated_node_name)
            return
        self.cluster.place(new, new.node)
        if old.node:
            for event in pod_events(Kind.ASSIGNED_POD, old, new):
                self.queue.move(event, now)
            return
        self.queue.delete(new.key)
        self.cluster.nominate(new, "")
        self.queue.move(Event(Kind.ASSIGNED_POD, Action.ADD, None, new), now)

    def delete_pod(self, pod: PodInfo, now: float) -> None:
        self.cluster.leave(pod)
        self.cluster.nominate(pod, "")
        if pod.node:
            self.cluster.unplace(pod, pod.node)
        else:
            self.queue.delete(pod.key)
        if pod.node or pod.pod.status.nominated_node_name:
            self.queue.move(Event(Kind.ASSIGNED_POD, Action.DELETE, pod, None), now)

    def tick(self, now: float) -> None:
        """To be called at every whole second."""
        self.queue.tick(now)

    def attempt(self, now: float) -> list[Decision] | None:
        """Try the next pod, or the next gang; None if there is nothing to try now."""
        queued = self.queue.pop(now)
        if queued is None:
            return None
        if self._gangs and queued.pod.group:
            return self._try_group([queued, *self.queue.take_group(queued.pod.group, now)], now)
        found = self._find(queued.pod)
        if isinstance(found, NotFound):
            return self._failed(queued, found, now)
        refused = self._reserve(queued.pod, found)
        return [Bind(queued.pod, found.node)] if refused is None else self._failed(queued, refused, now)

    def _find(self, pod: PodInfo) -> Found | NotFound:
        return find(self._profiles[pod.pod.spec.scheduler_name], self.cluster, pod)

    def _try_group(self, members: list[QueuedPod], now: float) -> list[Decision]:
        """All waiting members of a PodGroup in turn; they are bound if Permit approves at least one of them.

        A member for which pods have to be evicted counts as if it were on its node. The group then binds nothing yet:
        if Permit approves, all members are nominated to their nodes; if it does not, none is.
        """
        members.sort(key=lambda q: (-q.pod.priority, q.first_attempt or now, q.since))
        tried: list[tuple[QueuedPod, Found | NotFound, str]] = []
        approved = False
        waits: tuple[str, ...] = ()
        decisions: list[Decision] = []
        for queued in members:
            found = self._find(queued.pod)
            node = found.node if isinstance(found, Found) else found.nominated
            if node:
                self.cluster.place(queued.pod, node)
                status = self._permit(queued.pod, node)
                approved = approved or status.ok
                waits = waits or status.reasons
            tried.append((queued, found, node or ""))
        lost = NotFound(", ".join((_GROUP_FAILED, *waits, _ONLY_WAITS)), frozenset(), nominated="")
        preempts = any(node and isinstance(found, NotFound) for _, found, node in tried)
        binds = approved and not preempts
        for queued, found, node in tried:
            if node and not (binds and isinstance(found, Found)):
                self.cluster.unplace(queued.pod, node)
        for queued, found, node in tried:
            if isinstance(found, Found):
                if binds:
                    decisions.append(Bind(queued.pod, node))
                    continue
                failed = lost._replace(nominated=node if approved else "")
            else:
                failed = found if approved or not node else lost._replace(victims=found.victims)
            decisions += self._failed(queued, failed, now, retry=True)
        return decisions

    def _reserve(self, pod: PodInfo, found: Found) -> NotFound | None:
        """Reserve, Permit, PreBind, Bind and PostBind; all is undone if one of them refuses, which is returned."""
        profile = self._profiles[pod.pod.spec.scheduler_name]
        self.cluster.place(pod, found.node)
        status = self._bind(profile, pod, found)
        if status is None:
            for after in profile.post_bind:
                after.post_bind(found.state, pod, found.node)
            return None
        for undone in reversed(profile.reserve):
            undone.unreserve(found.state, pod, found.node)
        self.cluster.unplace(pod, found.node)
        return NotFound(status.message, frozenset((status.plugin,)) if status.rejected else frozenset())

    def _bind(self, profile: Profile, pod: PodInfo, found: Found) -> Status | None:
        for plugin in profile.reserve:
            status = plugin.reserve(found.state, pod, found.node)
            if not status.ok:
                return status.by(plugin.name)
        status = self._permit(pod, found.node, found.state)
        if not status.ok:
            return status
        for before in profile.pre_bind:
            status = before.pre_bind(found.state, pod, found.node)
            if not status.ok:
                return status.by(before.name)
        for binder in profile.bind:
            status = binder.bind(found.state, pod, found.node)
            if status.code is not Code.SKIP:
                return None if status.ok else status.by(binder.name)
        return Status(Code.ERROR, ("no Bind plugin binds the pod",))

    def _permit(self, pod: PodInfo, node: str, state: CycleState | None = None) -> Status:
        """The first answer that is no approval. A pod that has to wait alone is not held yet: it is tried again."""
        profile = self._profiles[pod.pod.spec.scheduler_name]
        for plugin in profile.permit:
            status, _timeout = plugin.permit(state or CycleState(), pod, node)
            if not status.ok:
                return status.by(plugin.name)
        return Status(Code.SUCCESS)

    def _failed(self, queued: QueuedPod, found: NotFound, now: float, *, retry: bool = False) -> list[Decision]:
        self.queue.fail(queued, now, found.refused_by, retry=retry)
        consequences = self._consequences(queued.pod, found)
        return [Fail(queued.pod, found.message), *consequences]

    def _consequences(self, pod: PodInfo, found: NotFound) -> list[Decision]:
        """The nomination and the evictions that follow from PostFilter."""
        decisions: list[Decision] = []
        if found.nominated is None:
            self.cluster.nominate(pod, pod.pod.status.nominated_node_name)
            return decisions
        if found.nominated != pod.pod.status.nominated_node_name:
            decisions.append(Nominate(pod, found.nominated))
        if found.victims:
            for other in list(self.cluster.nominated(found.nominated)):
                if other.priority < pod.priority and other.key != pod.key:
                    self.cluster.nominate(other, "")
                    decisions.append(Nominate(other, ""))
        self.cluster.nominate(pod, found.nominated)
        return decisions + [Evict(victim, pod) for victim in found.victims]
