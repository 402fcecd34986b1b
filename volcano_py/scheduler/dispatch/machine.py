"""Which write may begin now, and its result. Volcano: the work queues of the scheduler cache.

Pure: events in, writes and results out; no I/O, no clock.

Every method receives `now` (monotonic seconds). The process calls `take` for writes to begin, completes each with
`done` or `failed`, and forwards `results`. Reports that Volcano's cache adds to a write (Events, the SchedulerError
condition) are enqueued here as follow-ups.

Rules:
* Nothing is written without leadership. Operations that wait when it ends are `lost`; those that may have
  been written are `unknown`. Before a regular end, a gang whose binds have begun is bound whole.
* If a write cannot reach the server, no other one is started; one at a time is retried, with back-off.
* A write that the server fails to process (5xx, 429) is retried alone.
* Binds with pre-bind steps wait for them, and for those of their barrier (`dispatch.pre_bind.barriers`).
* Of conditions, nominations and statuses that wait for the same object only the newest is written; conditions of one
  object are written at least a second apart, those of a queue two.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from volcano_py.scheduler.dispatch.follow_ups import follow_ups
from volcano_py.scheduler.dispatch.messages import Outcome, Result, Revoke
from volcano_py.scheduler.dispatch.pre_bind.barriers import Barrier, StepWrite, after_steps, with_barriers
from volcano_py.scheduler.dispatch.waiting import EVENTS, Item, WaitingWrites, lane_of, object_key
from volcano_py.scheduler.model.plan import (
    Bind,
    Event,
    Evict,
    NativeGroupStatus,
    Nomination,
    Operation,
    PodCondition,
    PodGroupStatus,
    QueueStatus,
)

CONDITION_SPACING = 1.0
"""Seconds between two conditions of one pod."""
MAX_EVENTS = 10_000
"""The maximum number of pending Events; further ones are dropped."""
BUSY_ATTEMPTS = 8
"""Attempts of one write that results in 5xx or 429 (Events: 2) before it fails."""
MIN_BACKOFF, MAX_BACKOFF = 0.1, 5.0
POLL = 0.5
"""Seconds between two checks of what a pre-bind step waits for."""
MAX_SPACED = 200_000
"""Number of pods whose last condition is kept for the spacing."""


@dataclass(frozen=True)
class Failure:
    """Why a write failed."""

    kind: Literal["unreachable", "busy", "rejected", "conflict", "not-leading", "not-yet"]
    """No response; a 5xx, 429 or an invalid response; any other error; the object has another version than the one that
    the status is based on; the Lease expired just before the request was sent; what a pre-bind step waits for has not
    happened.
    """
    message: str
    sent: bool = True
    """False if the request certainly did not reach the server."""
    pod_gone: bool = False
    """The pod (with that uid) does not exist, so it gets no condition."""
    retry_after: float = 0.0
    """Seconds of the server's Retry-After."""

    def may_be_retried(self, attempts: int) -> bool:
        """Whether a pre-bind step is retried after this failure."""
        return self.kind == "unreachable" or (self.kind == "busy" and attempts < BUSY_ATTEMPTS)


class Machine:
    """The state of the dispatcher."""

    def __init__(
        self,
        max_in_flight: int = 64,
        heartbeat_timeout: float = 30.0,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.leading = False
        self.finishing = False
        """Whether only what has begun is written, because the process ends."""
        self._waiting = WaitingWrites(max_in_flight)
        self._heartbeat_timeout = heartbeat_timeout
        self._jitter = jitter
        self._last_beat = 0.0
        self._results: list[Result] = []
        self._outages = 0
        self._paused_until = 0.0
        self._written: dict[tuple[str, str, str], float] = {}
        self._barriers: set[Barrier] = set()

    # ---- from the decider -------------------------------------------------------------------------

    def plan(self, first: int, operations: Sequence[Operation], now: float) -> None:
        """Add operations that belong together, with the IDs first, first+1, …"""
        self._last_beat = now
        if not self.leading or self.finishing:
            ids = range(first, first + len(operations))
            self._results += [Result(id, "lost", "this dispatcher does not lead") for id in ids]
            return
        barriers, held = with_barriers(first, operations, now)
        for id, op in enumerate(operations, first):
            if id not in held:
                self._enqueue(id, op, now)
        for barrier in barriers:
            self._barriers.add(barrier)
            for write in barrier.start():
                self._enqueue(0, write, now)

    def revoke(self, what: Revoke, now: float) -> None:
        """Withdraw operations that wait for a deleted node, job or pod, but none in flight."""
        self._last_beat = now
        for barrier in [b for b in self._barriers if any(_concerns(what, bind) for _, bind in b.binds)]:
            self._fail_barrier(barrier, "revoked", what.reason, now)
        if what.kind == "Node":
            items = list(self._waiting.binds_to.get(what.name, ()))
        elif what.kind == "Job":
            items = list(self._waiting.of_job.get(what.name, ()))
        else:
            namespace, _, name = what.name.partition("/")
            line = self._waiting.objects.get(("Pod", namespace, name), ())
            items = [i for i in line if not what.uid or getattr(i.op, "uid", "") == what.uid]
        for item in sorted(items, key=lambda i: i.id):
            if not item.in_flight:
                self._end(item, "unknown" if item.unknown else "revoked", what.reason)

    def beat(self, now: float) -> None:
        """Record a heartbeat of the decider."""
        self._last_beat = now

    def silent(self, now: float) -> bool:
        """Whether the last heartbeat of the decider is too old: stop writing, release the Lease, end the decider."""
        return now - self._last_beat > self._heartbeat_timeout

    # ---- from the Lease ---------------------------------------------------------------------------

    def lead(self, leading: bool, now: float) -> None:
        """Begin or end leadership."""
        if self.leading and not leading:
            self.leading = False
            self._give_up(self._waiting.all())
        self.leading = leading
        if leading:
            self._outages, self._paused_until = 0, 0.0

    def finish(self) -> None:
        """Write only the remaining binds of gangs whose binds have begun, while this process leads; nothing else waits.

        Otherwise, when a process is replaced, a part of a gang would be bound until the next leader binds the rest.
        """
        self.finishing = True
        items = self._waiting.all()
        begun = {item.op.group for item in items if isinstance(item.op, Bind) and (item.in_flight or item.attempts)}
        self._give_up([item for item in items if not (isinstance(item.op, Bind) and item.op.group in begun)])

    # ---- from the API server ----------------------------------------------------------------------

    def take(self, now: float) -> list[Item]:
        """The writes that may begin now; each must be completed with `done` or `failed`."""
        if not self.leading or now < self._paused_until:
            return []
        if self._outages:
            # One write checks whether the outage is over.
            return list(self._waiting.take(now, 0 if self._waiting.in_flight else 1))
        return list(self._waiting.take(now))

    def done(self, item: Item, now: float) -> None:
        """Record that a write has succeeded."""
        self._answered()
        if _spacing(item.op):
            self._remember(item, now)
        self._end(item, "done", now=now)
        if isinstance(item.op, StepWrite):
            self._step_ended(item.op, True, now)
        for op in follow_ups(item.op) if self.leading else ():
            self._enqueue(0, op, now)

    def failed(self, item: Item, failure: Failure, now: float) -> None:
        """Record that a write has failed, or that its outcome is unknown."""
        op = item.op
        if isinstance(op, StepWrite) and self._step_failed(item, op, failure, now):
            return
        if failure.kind == "not-leading":
            self._end(item, "unknown" if item.unknown else "lost", failure.message, now)
            return
        if failure.kind == "conflict":
            self._answered()
            return self._end(item, "conflict", failure.message, now)
        if failure.kind == "rejected":
            self._answered()
            if item.unknown and isinstance(op, Bind | Evict) and not failure.pod_gone:
                # An earlier attempt may have taken effect: only the pod shows it.
                return self._end(item, "unknown", failure.message, now)
            text = f"failed to bind to node {op.node}: {failure.message}" if isinstance(op, Bind) else ""
            if isinstance(op, Bind) and op.steps and self.leading:
                self._waiting.remove(item)
                return self._fail_barrier(after_steps(item.id, op, now), "failed", text, now)
            self._end(item, "failed", failure.message, now)
            if isinstance(op, Bind) and not failure.pod_gone and self.leading:
                self._enqueue(0, _scheduler_error(op, text), now)
            return
        item.unknown = item.unknown or failure.sent
        if failure.kind == "busy":
            self._answered()
            limit = 2 if item.lane == EVENTS else BUSY_ATTEMPTS
            if item.attempts >= limit:
                self._end(item, "unknown" if item.unknown else "failed", failure.message, now)
                return
            pause = max(failure.retry_after, self._pause(item.attempts))
        else:
            pause = self._outage(item, now)
        if not self.leading:
            self._end(item, "unknown" if item.unknown else "lost", failure.message, now)
        elif isinstance(op, PodCondition) and self._is_bound_next(item):
            # A bind must not wait for the back-off of a condition, which does not hold any more.
            self._end(item, "superseded", failure.message, now)
        else:
            self._waiting.put_back(item, now + pause if pause else 0.0)

    # ---- for the process ---------------------------------------------------------------------------

    def results(self) -> list[Result]:
        """The results since the last call."""
        results, self._results = self._results, []
        return results

    @property
    def has_results(self) -> bool:
        """Whether `results` would return any."""
        return bool(self._results)

    @property
    def awaits_results(self) -> bool:
        """Whether results of writes in flight follow soon; Events that follow a write have none."""
        return self._waiting.urgent_in_flight > 0

    def wake_at(self, now: float) -> float | None:
        """When `take` should be called again without an event; None: after the next event."""
        if not self.leading:
            return None
        due = self._waiting.due()
        if self._outages and not self._waiting.in_flight and self._waiting.ready:
            due = self._paused_until if due is None else min(due, self._paused_until)
        return None if due is None else max(due, self._paused_until)

    @property
    def backlog(self) -> int:
        """Number of operations without a result, and of follow-ups."""
        return len(self._waiting) + sum(len(barrier.binds) for barrier in self._barriers)

    @property
    def in_flight(self) -> int:
        """Number of writes in flight."""
        return self._waiting.in_flight

    # ---- inside ----------------------------------------------------------------------------------------

    def _give_up(self, items: Sequence[Item]) -> None:
        """End those of the items that are not in flight, and all barriers."""
        for item in items:
            if not item.in_flight:
                self._end(item, "unknown" if item.unknown else "lost", "leadership was lost")
        # Completed steps are not undone: the next leader finds them in the objects.
        for barrier in self._barriers:
            self._results += [Result(id, "lost", "leadership was lost") for id, _ in barrier.binds]
        self._barriers.clear()

    def _enqueue(self, id: int, op: Operation | StepWrite, now: float) -> None:
        key = object_key(op)
        item = Item(id, op, key, lane_of(op), now)
        if isinstance(op, Evict) and self._revoke_bind(op.uid, now):
            self._report(item, "revoked", "its bind was waiting for volumes or devices, and is revoked", now)
            return
        line = self._waiting.objects.get(key, ())
        if isinstance(op, Bind | Evict):
            for older in [i for i in line if isinstance(i.op, PodCondition) and not i.in_flight]:
                self._end(older, "superseded")
        elif isinstance(op, PodCondition | Nomination | PodGroupStatus | NativeGroupStatus | QueueStatus):
            for older in line:
                if type(older.op) is type(op) and not older.in_flight:
                    # The newest replaces the older one in its lane, or in a more urgent one.
                    self._report(older, "superseded", "", None)
                    older.id, older.op = id, op
                    self._waiting.promote(older, item.lane)
                    return
            spacing = _spacing(op)
            if spacing:
                last = self._written.get(key)
                item.not_before = 0.0 if last is None else last + spacing
                if item.not_before <= now:
                    item.not_before = 0.0
        elif isinstance(op, Event) and self._waiting.events() >= MAX_EVENTS:
            self._report(item, "failed", "too many pending Events", now)
            return
        self._waiting.push(item)

    def _revoke_bind(self, uid: str, now: float) -> bool:
        """Revoke the bind of an evicted pod that waits for its pre-bind steps, with those of its barrier; False if
        there is none. The pod holds no node yet, so that its deletion would gain nothing."""
        barriers = [barrier for barrier in self._barriers if any(bind.uid == uid for _, bind in barrier.binds)]
        for barrier in barriers:
            if barrier.outcome is None:
                self._fail_barrier(barrier, "revoked", "a pod of the gang is evicted", now)
        return bool(barriers)

    def _step_ended(self, write: StepWrite, may_be_done: bool, now: float) -> None:
        """After the end of a pre-bind step: begin the next writes."""
        barrier = write.barrier
        if barrier not in self._barriers:
            return
        for next_write in barrier.ended(write, may_be_done):
            self._enqueue(0, next_write, now)
        self._settle(barrier, now)

    def _step_failed(self, item: Item, write: StepWrite, failure: Failure, now: float) -> bool:
        """Handle failures that only steps have; False: the step is retried as any other write."""
        barrier = write.barrier
        if failure.kind == "not-yet":
            if barrier.outcome is None and now - barrier.since < write.patience:
                self._answered()
                self._waiting.put_back(item, now + POLL)
                return True
        elif self.leading and (write.undo or barrier.outcome is None) and failure.may_be_retried(item.attempts):
            return False
        if failure.kind not in ("unreachable", "not-leading"):
            self._answered()
        self._waiting.remove(item)
        if barrier not in self._barriers:
            return True
        if not write.undo:
            bind = write.bind
            text = f"execute preBind for pod {bind.namespace}/{bind.name} failed: {failure.message}"
            barrier.fail("failed", text)
            self._withdraw_steps(barrier)
        self._step_ended(write, True, now)
        return True

    def _fail_barrier(self, barrier: Barrier, outcome: Outcome, message: str, now: float) -> None:
        self._barriers.add(barrier)
        barrier.fail(outcome, message)
        self._withdraw_steps(barrier)
        for write in barrier.undo():
            self._enqueue(0, write, now)
        self._settle(barrier, now)

    def _withdraw_steps(self, barrier: Barrier) -> None:
        """Withdraw the pending steps of a failed barrier."""
        for item in self._waiting.all():
            op = item.op
            if isinstance(op, StepWrite) and op.barrier is barrier and not op.undo and not item.in_flight:
                self._waiting.remove(item)
                barrier.withdrawn(op, item.unknown)

    def _settle(self, barrier: Barrier, now: float) -> None:
        """Write the binds of a barrier that has passed, or report those of one that has failed."""
        if barrier.passed:
            self._barriers.discard(barrier)
            for id, bind in barrier.binds:
                self._enqueue(id, bind, now)
        elif barrier.over and barrier in self._barriers:
            self._barriers.discard(barrier)
            assert barrier.outcome is not None
            for id, bind in barrier.binds:
                self._results.append(Result(id, barrier.outcome, barrier.message))
                if barrier.outcome == "failed" and self.leading:
                    self._enqueue(0, _scheduler_error(bind, barrier.message), now)

    def _end(self, item: Item, outcome: Outcome, message: str = "", now: float | None = None) -> None:
        self._waiting.remove(item)
        self._report(item, outcome, message, now)

    def _report(self, item: Item, outcome: Outcome, message: str, now: float | None) -> None:
        if item.id:
            waited = took = 0.0
            if now is not None and item.begun:
                waited, took = item.begun - item.since, now - item.begun
            self._results.append(Result(item.id, outcome, message, waited, took))

    def _remember(self, item: Item, now: float) -> None:
        if len(self._written) >= MAX_SPACED:
            for key in [k for k, at in self._written.items() if at + CONDITION_SPACING < now]:
                del self._written[key]
        self._written[item.key] = now
        for later in self._waiting.objects.get(item.key, ()):
            if not later.in_flight and (spacing := _spacing(later.op)):
                later.not_before = now + spacing

    def _is_bound_next(self, item: Item) -> bool:
        """Whether a bind or an eviction of the same pod waits for this write."""
        return any(isinstance(later.op, Bind | Evict) for later in self._waiting.objects.get(item.key, ()))

    def _answered(self) -> None:
        self._outages, self._paused_until = 0, 0.0

    def _outage(self, item: Item, now: float) -> float:
        # Of several writes that fail at the same time only one counts as an attempt.
        if now >= self._paused_until:
            self._outages += 1
            self._paused_until = now + self._pause(self._outages)
        return 0.0

    def _pause(self, failures: int) -> float:
        base: float = min(MAX_BACKOFF, MIN_BACKOFF * 2 ** min(failures - 1, 20))
        return base * (0.5 + self._jitter())


def _spacing(op: Operation | StepWrite) -> float:
    """Seconds between two writes of this kind to one object."""
    return CONDITION_SPACING if isinstance(op, PodCondition) else 0.0


def _scheduler_error(bind: Bind, message: str) -> PodCondition:
    return PodCondition(bind.namespace, bind.name, bind.uid, "SchedulerError", message)


def _concerns(what: Revoke, bind: Bind) -> bool:
    """Whether a deleted object is the node, the job or the pod of a bind."""
    match what.kind:
        case "Node":
            return bind.node == what.name
        case "Job":
            return bind.group == what.name
        case _:
            return f"{bind.namespace}/{bind.name}" == what.name and what.uid in ("", bind.uid)
