"""LiveProfiles: the profiles of `--config` in the scheduler's process. Kubernetes: cmd/kube-scheduler, scheduler.go.

event → Cache → model, then Feed → PodScheduler's queue
                  ↑                     │ PodLoop: attempt
       assume     │                     ▼
dispatcher ◄── Planner ◄── operations ◄── decisions
    │ result
    └──► bound, or forgotten in the model and tried again
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

from prometheus_client import CollectorRegistry

from volcano_py.api.core import Node, Pod
from volcano_py.scheduler.cache.cache import Cache
from volcano_py.scheduler.dispatch.handle import DispatcherHandle
from volcano_py.scheduler.dispatch.messages import Result
from volcano_py.scheduler.model import plan
from volcano_py.scheduler.model.plan import Emit, Operation
from volcano_py.scheduler.pods.document import ProfilesFile
from volcano_py.scheduler.pods.feed import Feed
from volcano_py.scheduler.pods.loop import PodLoop
from volcano_py.scheduler.pods.metrics import ERROR, SCHEDULED, UNSCHEDULABLE, PodMetrics
from volcano_py.scheduler.pods.operations import operations
from volcano_py.scheduler.profiles.cluster_events import (
    BindEnded,
    BoundBySession,
    CallAnswered,
    NodeReleased,
    ObjectChanged,
    PlaceFreed,
    PodChanged,
)
from volcano_py.scheduler.profiles.decisions import SCHEDULER_ERROR, Ask, BindPod, Decision, EvictPod, Fail, Patch
from volcano_py.scheduler.profiles.plugin_api.calls import Answer
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.scheduler import PodScheduler
from volcano_py.scheduler.profiles.sessions.session_rules import SessionRules
from volcano_py.scheduler.protection.watchdog import CycleStuck
from volcano_py.scheduler.recording.entries import ProfileSettings
from volcano_py.scheduler.recording.recorder import Recorder
from volcano_py.scheduler.runtime.planner import Planner

log = logging.getLogger(__name__)

BUILT_IN = "volcano_py.scheduler.profiles"
"""The package of the plugins that are built in."""


class _Binding(NamedTuple):
    """A binding without a result."""

    pod: PodInfo
    begun: float
    """When its attempt began."""


class _Tries:
    """How often a pod was tried, and since when it waits."""

    __slots__ = ("count", "since")

    def __init__(self, since: float) -> None:
        self.since = since
        self.count = 0


class LiveProfiles:
    """Follows the cache, tries pods, and carries the decisions out. `send` emits operations."""

    def __init__(
        self, file: ProfilesFile, cache: Cache, handle: DispatcherHandle, send: Emit, registry: CollectorRegistry
    ) -> None:
        self.send_request: Callable[[Ask | Patch], None] = lambda request: None
        """Sends requests of plugins, see `remote.plugin_requests`."""
        self.replay_objects: Callable[[], None] = lambda: None
        """Reports all objects that plugins read to `object_changed`."""
        self.watching: Callable[[], AbstractContextManager[None]] = nullcontext
        """Watches an attempt; raises CycleStuck."""
        self.on_stuck: Callable[[CycleStuck], None] = lambda stuck: None
        """Receives an attempt that was ended; the model must then be built again."""
        self._recorder: Recorder | None = None
        """Records the attempts; see `record`."""
        self._file = file
        self._cache = cache
        self._handle = handle
        self._send = send
        self._bindings: dict[str, _Binding] = {}
        self._tries: dict[str, _Tries] = {}
        self._reported: frozenset[str] = frozenset()
        """What was reported about rules that do not hold for gangs."""
        self.metrics = PodMetrics(
            registry,
            lambda: self.scheduler.queue.sizes(),
            lambda: dict(self.scheduler.queue.incoming),
            lambda: self.scheduler.queue.entities(),
            lambda: dict(self.scheduler.queue.incoming_entities),
        )
        self.loop = PodLoop(cache.model, handle, self._attempt, self._tick, self._has_time)
        self.scheduler: PodScheduler
        self._configure()

    @property
    def names(self) -> frozenset[str]:
        """The schedulerNames of the profiles."""
        return self._file.names

    def record(self, recorder: Recorder) -> None:
        """Record the attempts from now on, also those of later profiles."""
        self._recorder = recorder
        file, scheduler = self._file, self.scheduler
        settings = ProfileSettings({**file.document}, tuple(sorted(file.features)), file.release.name)
        recorder.set_profiles(settings, lambda: scheduler.cluster.order)
        scheduler.searches.report = recorder.search

    # ---- requests of plugins ----------------------------------------------------------------------------

    def object_changed(self, old: Any, new: Any) -> None:
        """An object of a kind that a plugin reads."""
        if new is not None:
            self.scheduler.handle(ObjectChanged(new), time.monotonic())
        else:
            self.scheduler.handle(ObjectChanged(old, deleted=True), time.monotonic())
        self.loop.wake()

    def answered(self, number: str, answer: Answer) -> None:
        """What has come of a call that a plugin has made."""
        now = time.monotonic()
        self._carry_out(self.scheduler.handle(CallAnswered(number, answer), now), now)
        self.loop.wake()

    async def run(self, *ready: asyncio.Event) -> None:
        """Try pods until cancelled, the first one after the cache is ready and all events in `ready` are set."""
        await self.loop.run(self._cache.ready, *ready)

    # ---- from the cache ---------------------------------------------------------------------------------

    def changed(self, kind: str, old: Any, new: Any) -> None:
        """An object of the model was added (`old` is None), changed or deleted (`new` is None)."""
        if kind == "Pod":
            self._pod_changed(old, new)
        self._feed.changed(kind, old, new, time.monotonic())
        if len(self.scheduler) or self.scheduler.has_decisions:
            self.loop.wake()

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            self._tries.pop(old.metadata.uid, None)
            self.metrics.groups.evicted(old.metadata.uid, ok=True)
        if new is None or new.spec.scheduler_name not in self.names:
            return
        if new.spec.node_name:
            self._bound(new.metadata.uid)
            return
        self._tries.setdefault(new.metadata.uid, _Tries(time.monotonic()))

    def forgotten(self, operation: Operation, why: str) -> None:
        """The model has forgotten an assumed operation: it was not carried out."""
        if not isinstance(operation, plan.Bind):
            return
        binding = self._bindings.pop(operation.uid, None)
        if binding is not None:
            self._put_back(binding.pod, why or "the binding was not written")
        elif self.scheduler.needs_events and (pod := self._pod_of(operation)) is not None:
            self.scheduler.handle(PlaceFreed(pod, operation.node), time.monotonic())
            self.loop.wake()

    def released(self, node: Node) -> None:
        """A node is no longer held."""
        self.scheduler.handle(NodeReleased(node), time.monotonic())
        self.loop.wake()

    def assumes(self, key: str, uid: str) -> bool:
        """Whether a pod waits at Permit, or for the end of its binding."""
        return uid in self._bindings or key in self.scheduler

    def _pod_of(self, operation: plan.Bind) -> PodInfo | None:
        """The pod that an operation is about, if it is still there."""
        pod = self.scheduler.cluster.pod(f"{operation.namespace}/{operation.name}")
        return pod if pod is not None and pod.pod.metadata.uid == operation.uid else None

    def rules_for_session(self, closed: Collection[str]) -> SessionRules:
        """See PodScheduler."""
        return self.scheduler.rules_for_session(time.monotonic(), closed)

    @property
    def plugin_modules(self) -> dict[str, str]:
        """The plugins that are not built in, by module."""
        kinds = {name: r.kind for name, r in self._file.configuration.registry.items() if not r.default}
        return {k.__module__: name for name, k in kinds.items() if not k.__module__.startswith(f"{BUILT_IN}.")}

    # ---- from the dispatcher ----------------------------------------------------------------------------

    def handle_result(self, operation: Operation, result: Result) -> bool:
        """Take the result of a binding that a profile has decided; whether there is nothing left to do about it."""
        if isinstance(operation, plan.Evict):
            self.metrics.groups.evicted(operation.uid, ok=result.outcome in ("done", "superseded"))
        if not isinstance(operation, plan.Bind):
            return False
        if operation.uid not in self._bindings:
            # Without a job it is the profile's own, whose binding the watch has confirmed before this result.
            of_session = bool(operation.group) and result.outcome in ("done", "superseded")
            if of_session and (pod := self._pod_of(operation)) is not None:
                now = time.monotonic()
                self._carry_out(self.scheduler.handle(BoundBySession(pod, operation.node), now), now)
            return False
        if result.outcome in ("done", "superseded"):
            self._bound(operation.uid)
            return True
        if result.outcome == "unknown":
            return False  # the cache reads the pod
        self._report(ERROR, self._bindings[operation.uid].pod, self._bindings[operation.uid].begun)
        self._cache.forget(operation, result.message or result.outcome)
        self.loop.wake()
        return True

    def _bound(self, uid: str) -> None:
        """A binding is confirmed, by its result or by the watch, whichever is first."""
        binding = self._bindings.pop(uid, None)
        tries = self._tries.pop(uid, None)
        if binding is None:
            return
        now = time.monotonic()
        self._carry_out(self.scheduler.handle(BindEnded(binding.pod.key, "", uid), now), now)
        self._report(SCHEDULED, binding.pod, binding.begun)
        if tries is not None:
            self.metrics.scheduled(tries.count, now - tries.since)

    # ---- from the configuration -------------------------------------------------------------------------

    def poll(self) -> None:
        """Check the file for a change, and put new profiles in force: all waiting pods enter a new queue."""
        if self._file.poll():
            self.rebuilt()

    def rebuilt(self) -> None:
        """Begin again with all waiting pods: the profiles, or the model, are new."""
        now = time.monotonic()
        self._carry_out(self.scheduler.close(now), now)
        self._configure()
        self.replay_objects()
        self._cache.schedule_for(self.names)
        for pod in self._cache.informers["Pod"].store.values():
            task = self._cache.model.tasks.get(pod.metadata.key)
            if task is not None and not task.takes_capacity:
                self.changed("Pod", None, pod)

    def _configure(self) -> None:
        self.scheduler = PodScheduler(
            self._file.configuration, self._file.features, self._cache.model, self.metrics.groups
        )
        self._feed = Feed(self.scheduler, self.names)
        for text in self.scheduler.session_rules.left_out:
            if text not in self._reported:
                log.warning("%s: %s", self._file.path, text)
        self._reported = frozenset(self.scheduler.session_rules.left_out)
        if self._recorder is not None:
            self.record(self._recorder)

    def _has_time(self) -> bool:
        """Whether time alone may change something: a back-off ends, or a wait at Permit."""
        return self.scheduler.next_deadline() is not None

    # ---- attempts ---------------------------------------------------------------------------------------

    def _attempt(self, now: float) -> bool:
        try:
            with self.watching():
                decisions = self.scheduler.attempt(now)
        except CycleStuck as stuck:
            self.on_stuck(stuck)
            return False
        except Exception:
            log.exception("an attempt to schedule a pod failed")
            return True
        if decisions is None:
            return False
        self._carry_out(decisions, now)
        return True

    def _tick(self, now: float) -> None:
        self._carry_out(self.scheduler.tick(now), now)

    def _carry_out(self, decisions: Sequence[Decision], begun: float) -> None:
        for decision in decisions:
            match decision:
                case BindPod(pod):
                    self._bindings[pod.pod.metadata.uid] = _Binding(pod, begun)
                    self._tried(pod, begun)
                case Fail(pod, _, reason):
                    self._tried(pod, begun)
                    self._report(ERROR if reason == SCHEDULER_ERROR else UNSCHEDULABLE, pod, begun)
                case Ask() | Patch():
                    self.send_request(decision)
        if victims := [d for d in decisions if isinstance(d, EvictPod)]:
            for_group = victims[0].for_group
            if not for_group:
                self.metrics.preempted(len(victims))
            self.metrics.groups.evicting({d.pod.pod.metadata.uid for d in victims}, by_group=for_group)
        self._write(decisions)

    def _write(self, decisions: Sequence[Decision]) -> None:
        """Send the operations that are needed, and assume them."""
        planner = Planner(self._cache.model, self._send)
        if found := list(operations(decisions, self._cache.model)):
            planner.submit(found)
            planner.assume({})

    def _tried(self, pod: PodInfo, begun: float) -> None:
        self._tries.setdefault(pod.pod.metadata.uid, _Tries(begun)).count += 1

    def _report(self, result: str, pod: PodInfo, begun: float) -> None:
        self.metrics.attempt(result, pod.pod.spec.scheduler_name, time.monotonic() - begun)

    def _put_back(self, pod: PodInfo, why: str) -> None:
        now = time.monotonic()
        self._carry_out(self.scheduler.handle(BindEnded(pod.key, why, pod.pod.metadata.uid), now), now)
        known = self.scheduler.cluster.pod(pod.key)
        is_there = known is not None and known.pod.metadata.uid == pod.pod.metadata.uid
        if is_there and pod.key not in self.scheduler:  # the profiles are newer than the binding
            self.scheduler.handle(PodChanged(None, pod), now)
