"""Binding cycles: from Reserve to PostBind, concurrent with the scheduling cycles of other pods.

Kubernetes: schedule_one.go (bindingCycle), framework/runtime/waiting_pods_map.go.

A pod is counted on its node ("assumed") from Reserve until its binding is observed or has failed. After a failure,
Unreserve of all plugins runs in reverse order, the capacity is released, and the pod returns to the queue.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from enum import Enum, auto

from volcano_py.scheduler.profiles.attempts.attempt import Found, NotFound, failure
from volcano_py.scheduler.profiles.decisions import BindPod, ReportEvent
from volcano_py.scheduler.profiles.faults import PluginFault, contained, expect
from volcano_py.scheduler.profiles.plugin_api.cycle_state import CycleState
from volcano_py.scheduler.profiles.plugin_api.events import ClusterEvent
from volcano_py.scheduler.profiles.plugin_api.extension_points import Permit, ProfilePlugin
from volcano_py.scheduler.profiles.plugin_api.handle import WaitingPod, World
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.plugin_api.status import Code, Status
from volcano_py.scheduler.profiles.profile import Profile
from volcano_py.scheduler.profiles.queue import QueuedPod

LONGEST_WAIT = 900.0
"""The longest time in seconds that Permit can hold a pod."""
LONGEST_BINDING = 30.0
"""Seconds within which a binding that a plugin has written must be observed."""


_CANNOT_BIND = "plugin {} binds by itself, which is not possible for pods whose volumes or claims must be written first"
_Ask = Callable[[CycleState, PodInfo, str], Status]


class Stage(Enum):
    """The stage of a cycle."""

    POINTS = auto()
    """Plugins are being called; one of them may wait for the response of another program."""
    PERMIT = auto()
    """Permit holds the pod."""
    WRITE = auto()
    """The binding is being written, or a plugin has written it and it is not observed yet."""


class _Rejected(Exception):
    """A plugin has ended the cycle."""

    def __init__(self, why: NotFound) -> None:
        self.why = why


class BindingCycle:
    def __init__(self, queued: QueuedPod, profile: Profile, found: Found, world: World) -> None:
        self.queued = queued
        self.profile = profile
        self.state = found.state
        self.node = found.node
        self.since = world.now
        self.stage = Stage.POINTS
        self.deadlines: dict[str, float] = {}
        """Plugins that hold the pod, to the time at which it is rejected."""
        self.given_up: NotFound | None = None
        """Why the cycle ends, if it was rejected from outside."""
        self.written_by = ""
        """The plugin that has written the binding; empty: the scheduler writes it."""
        self.seen_by: float | None = None
        """The time at which a binding that a plugin has written counts as missing."""
        self.asking = ""
        """The plugin that waits for the response of another program."""
        self.helped = False
        """Whether an event occurred in the meantime that may make the pod schedulable if a plugin rejects it."""
        self.course = _course(self, world)

    @property
    def pod(self) -> PodInfo:
        return self.queued.pod


class BindingCycles:
    """The table of binding cycles.

    `lost` is called with a cycle that failed, after it is undone. Plugins may call `allow` and `reject` at any time;
    `settle` applies these calls.
    """

    def __init__(self, world: World, lost: Callable[[BindingCycle, NotFound], None]) -> None:
        self._world = world
        self._lost = lost
        self._cycles: dict[str, BindingCycle] = {}
        self._ready: deque[BindingCycle] = deque()

    def __len__(self) -> int:
        return len(self._cycles)

    def __iter__(self) -> Iterator[BindingCycle]:
        return iter(list(self._cycles.values()))

    def get(self, key: str) -> BindingCycle | None:
        return self._cycles.get(key)

    def start(self, queued: QueuedPod, profile: Profile, found: Found) -> None:
        """Assume a pod on its node, and run its cycle as far as possible."""
        cycle = self._cycles[queued.pod.key] = BindingCycle(queued, profile, found, self._world)
        self._world.cluster.place(queued.pod, found.node)
        self._run(cycle)

    def resume(self, key: str) -> None:
        """Mark a cycle whose plugin has got its response."""
        cycle = self._cycles.get(key)
        if cycle is not None and cycle.stage is Stage.POINTS:
            self._ready.append(cycle)

    def settle(self) -> None:
        """Continue the cycles that were allowed, resumed or rejected."""
        while self._ready:
            cycle = self._ready.popleft()
            if self._cycles.get(cycle.pod.key) is not cycle:
                continue
            if cycle.given_up is not None:
                self.fail(cycle, cycle.given_up)
            elif cycle.stage is not Stage.WRITE and not cycle.deadlines:
                cycle.stage = Stage.POINTS
                self._run(cycle)

    def waiting(self) -> list[WaitingPod]:
        """The pods that Permit holds."""
        return [WaitingPod(c.pod, c.node, dict(c.deadlines)) for c in self._cycles.values() if _is_held(c)]

    def holds(self, key: str, plugin: str) -> bool:
        """Whether Permit holds a pod because of a plugin."""
        cycle = self._cycles.get(key)
        return cycle is not None and _is_held(cycle) and plugin in cycle.deadlines

    def allow(self, key: str, plugin: str) -> None:
        cycle = self._cycles.get(key)
        held = cycle is not None and cycle.deadlines.pop(plugin, None) is not None
        if cycle is not None and held and not cycle.deadlines and cycle.stage is Stage.PERMIT:
            self._ready.append(cycle)

    def reject(self, key: str, plugin: str, message: str) -> None:
        cycle = self._cycles.get(key)
        if cycle is not None and cycle.stage is Stage.PERMIT:
            self.give_up(cycle, NotFound(message, frozenset((plugin,))))

    def give_up(self, cycle: BindingCycle, why: NotFound) -> None:
        """End a cycle whose binding is not being written yet."""
        if cycle.stage is not Stage.WRITE and cycle.given_up is None:
            cycle.given_up = why
            self._ready.append(cycle)

    def expire(self) -> None:
        """Reject the pods whose time at Permit is over, and those that a plugin announced to bind and did not bind."""
        now = self._world.now
        for cycle in self:
            if cycle.seen_by is not None and cycle.seen_by <= now:
                text = f"the pod is not bound to {cycle.node} {LONGEST_BINDING:g} s after the plugin announced it"
                self.fail(cycle, failure(str(PluginFault(cycle.written_by, "Bind", text))))
                continue
            late = [plugin for plugin, deadline in cycle.deadlines.items() if deadline <= now]
            if late:
                text = f"rejected due to timeout after waiting {now - cycle.since:g}s at plugin {late[0]}"
                self.reject(cycle.pod.key, late[0], text)

    def next_deadline(self) -> float | None:
        """The next time at which `expire` has an effect."""
        waits = (d for c in self._cycles.values() for d in (c.seen_by, *c.deadlines.values()))
        return min((d for d in waits if d is not None), default=None)

    def note(self, event: ClusterEvent) -> None:
        """Record an event: a pod that a plugin holds now, at Permit or until a response, and rejects later is tried
        again soon if the event may help it."""
        for cycle in self._cycles.values():
            names = (*cycle.deadlines, cycle.asking)
            interests = (i for name in names for i in cycle.profile.interests.get(name, ()))
            cycle.helped = cycle.helped or any(i.helps(cycle.pod, event) for i in interests)

    def bound(self, key: str) -> None:
        """The binding of a pod in the table is written."""
        cycle = self._cycles.pop(key)
        self._world.questions.forget(key)
        for plugin in cycle.profile.post_bind:
            try:
                with contained(plugin.name, "PostBind"):
                    plugin.post_bind(cycle.state, cycle.pod, cycle.node)
            except PluginFault as fault:
                self._world.emit(ReportEvent(cycle.pod, "Warning", "PluginFailed", str(fault)))

    def fail(self, cycle: BindingCycle, why: NotFound) -> None:
        """Undo a cycle, and return its pod to the queue."""
        self.undo(cycle)
        self._lost(cycle, why)

    def undo(self, cycle: BindingCycle) -> None:
        """Unreserve in reverse order, and release the capacity."""
        for plugin in reversed(cycle.profile.reserve):
            try:
                with contained(plugin.name, "Unreserve"):
                    plugin.unreserve(cycle.state, cycle.pod, cycle.node)
            except PluginFault as fault:
                self._world.emit(ReportEvent(cycle.pod, "Warning", "PluginFailed", str(fault)))
        del self._cycles[cycle.pod.key]
        self._world.questions.forget(cycle.pod.key)
        self._world.cluster.unplace(cycle.pod, cycle.node)

    def _run(self, cycle: BindingCycle) -> None:
        try:
            cycle.stage = next(cycle.course)
        except _Rejected as rejected:
            self.fail(cycle, rejected.why)
        except PluginFault as fault:
            self.fail(cycle, failure(str(fault)))
        if cycle.stage is Stage.WRITE:
            if cycle.written_by:
                cycle.seen_by = self._world.now + LONGEST_BINDING
            else:
                steps = self._world.claims.hand_over(cycle.pod, cycle.node)
                self._world.emit(BindPod(cycle.pod, cycle.node, steps))


def _is_held(cycle: BindingCycle) -> bool:
    return cycle.stage is Stage.PERMIT and cycle.given_up is None and bool(cycle.deadlines)


def _course(cycle: BindingCycle, world: World) -> Iterator[Stage]:
    """Reserve, Permit, PreBind and Bind; yields at each point where the cycle waits. Raises _Rejected and
    PluginFault."""
    profile = cycle.profile
    for reserve in filter(cycle.state.concerns, profile.reserve):
        yield from _passes(cycle, reserve, "Reserve", reserve.reserve)
    for permit in profile.permit:
        timeout = yield from _permitted(cycle, permit)
        if timeout is not None:
            cycle.deadlines[permit.name] = world.now + min(timeout, LONGEST_WAIT)
    while cycle.deadlines:
        yield Stage.PERMIT
    for before in filter(cycle.state.concerns, profile.pre_bind):
        yield from _passes(cycle, before, "PreBind", before.pre_bind)
    for binder in profile.bind:
        if binder.writes_itself and world.claims.has_steps(cycle.pod):
            raise _Rejected(failure(_CANNOT_BIND.format(binder.name)))
        if (yield from _passes(cycle, binder, "Bind", binder.bind)) is not Code.SKIP:
            cycle.written_by = binder.name if binder.writes_itself else ""
            yield Stage.WRITE
            return
    raise _Rejected(failure("no Bind plugin binds the pod"))


def _passes(cycle: BindingCycle, plugin: ProfilePlugin, point: str, ask: _Ask) -> Generator[Stage, None, Code]:
    """Call a plugin until it returns success or skip."""
    while True:
        with contained(plugin.name, point):
            status = expect(ask(cycle.state, cycle.pod, cycle.node), Status, plugin.name, point)
        if status.code is not Code.PENDING:
            cycle.asking = ""
            return _accepted(status, plugin, point)
        cycle.asking = plugin.name
        yield Stage.POINTS


def _permitted(cycle: BindingCycle, plugin: Permit) -> Generator[Stage, None, float | None]:
    """Call a Permit plugin; returns for how many seconds it holds the pod, None: it approves."""
    while True:
        with contained(plugin.name, "Permit"):
            status, timeout = plugin.permit(cycle.state, cycle.pod, cycle.node)
            expect(status, Status, plugin.name, "Permit")
            seconds = float(timeout)
        if status.code is Code.PENDING:
            cycle.asking = plugin.name
            yield Stage.POINTS
            continue
        cycle.asking = ""
        if status.code is Code.WAIT:
            return seconds
        _accepted(status, plugin, "Permit")
        return None


def _accepted(status: Status, plugin: ProfilePlugin, point: str) -> Code:
    if status.rejected:
        raise _Rejected(NotFound(status.message, frozenset((plugin.name,))))
    if status.ok or (point == "Bind" and status.code is Code.SKIP):
        return status.code
    raise PluginFault(plugin.name, point, status.message)
