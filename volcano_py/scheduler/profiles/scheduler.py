"""PodScheduler: tries one pod after another and returns decisions. Kubernetes: scheduler.go.

The caller reports what happens (`cluster_events`) to `handle`, with the time, and carries out the decisions, whose
outcomes it reports as well.
"""

from __future__ import annotations

from collections.abc import Collection

from volcano_py.scheduler.model.cluster import Cluster as Model
from volcano_py.scheduler.profiles.attempts.attempt import AnswerPending, Found, NotFound, failure
from volcano_py.scheduler.profiles.attempts.binding import BindingCycle, BindingCycles, Stage
from volcano_py.scheduler.profiles.attempts.group_cycle import GroupCycles
from volcano_py.scheduler.profiles.attempts.searches import Searches
from volcano_py.scheduler.profiles.cluster import ProfileCluster
from volcano_py.scheduler.profiles.cluster_events import (
    BindEnded,
    BoundBySession,
    CallAnswered,
    Event,
    PermitAllowed,
    PermitRejected,
)
from volcano_py.scheduler.profiles.configuration import FEATURES, ProfilesConfiguration
from volcano_py.scheduler.profiles.decisions import SCHEDULER_ERROR, UNSCHEDULABLE, Decision, EvictPod, Fail, Nominate
from volcano_py.scheduler.profiles.event_handlers import EventHandlers
from volcano_py.scheduler.profiles.groups.cycles import RootCycles
from volcano_py.scheduler.profiles.groups.queue import GroupedQueue, QueuedGroup
from volcano_py.scheduler.profiles.objects import ObjectKind
from volcano_py.scheduler.profiles.observations import Observations
from volcano_py.scheduler.profiles.plugin_api.calls import Answer
from volcano_py.scheduler.profiles.plugin_api.events import ActionType, ClusterEvent, Kind
from volcano_py.scheduler.profiles.plugin_api.handle import WaitingPod, World
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.profile import Profile
from volcano_py.scheduler.profiles.queue import Again, QueuedPod, SchedulingQueue
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
        self._events = EventHandlers(self._world, self._profiles, self.queue, self._cycles, self._awaiting)

    @property
    def reads(self) -> frozenset[ObjectKind]:
        """The kinds whose objects the plugins read; report them as ObjectChanged."""
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

    def handle(self, event: Event, now: float) -> list[Decision]:
        """Take an event. Decisions that follow from a change of the cluster are returned by the next call of `attempt`
        or `tick`, so that many changes are one step; those that follow from an outcome are returned at once.

        Raises ValueError for an invalid object of volumes or devices."""
        self._world.now = now
        match event:
            case BindEnded():
                self._bind_ended(event)
            case BoundBySession(pod, node):
                self.session_rules.bound(pod, node)
            case CallAnswered(number, answer):
                self._answered(number, answer)
            case PermitAllowed(key, plugin):
                self._cycles.allow(key, plugin)
            case PermitRejected(key, plugin, message):
                self._cycles.reject(key, plugin, message)
            case _:
                self._events.handle(event)
                return []
        return self._answer()

    def rules_for_session(self, now: float, closed: Collection[str] = ()) -> SessionRules:
        """The rules of the profiles for pods that a session places, which begins now. `closed`: plugins that are not
        called: their filters reject all nodes."""
        self._world.now = now
        self.session_rules.closed = frozenset(closed)
        return self.session_rules

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

    def _bind_ended(self, event: BindEnded) -> None:
        key, error, uid = event
        cycle = self._cycles.get(key)
        self._world.claims.settle(uid or (cycle.pod.pod.metadata.uid if cycle is not None else ""), written=not error)
        if cycle is not None and cycle.stage is Stage.WRITE and uid in ("", cycle.pod.pod.metadata.uid):
            if error:
                self._cycles.fail(cycle, failure(f"binding rejected: {error}"))
            else:
                self._cycles.bound(key)

    def _answered(self, number: str, answer: Answer) -> None:
        key = self._world.questions.take(number, answer)
        queued = self._awaiting.pop(key, None)
        if queued is not None:
            self.queue.put_back(queued)
        self.queue.reconsider(key, self._world.now)
        self._cycles.resume(key)

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
