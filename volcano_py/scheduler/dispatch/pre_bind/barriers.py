"""Barriers: binds that wait until the pre-bind steps of all of them have succeeded. Volcano: PreBind of the cache, with
PreBindRollBack, for each pod alone.

Pure data; the machine starts the writes. The steps of one bind run one after the other, those of several binds
concurrently, and the binds come last. When a step fails, the completed steps are undone one by one, the last one first;
then all binds of the barrier get their result.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from volcano_py.scheduler.dispatch.messages import Outcome
from volcano_py.scheduler.model.jobs.pre_bind import AwaitDevices, AwaitVolume, PreBindStep
from volcano_py.scheduler.model.plan import Bind, Operation


@dataclass(eq=False, slots=True)
class StepWrite:
    """One step of one bind as a write; `undo`: undo it instead."""

    barrier: Barrier
    bind: Bind
    index: int
    undo: bool = False

    @property
    def step(self) -> PreBindStep:
        return self.bind.steps[self.index]

    @property
    def patience(self) -> float:
        """Seconds for which the step may wait for other components; 0: it does not wait."""
        step = self.step
        return step.timeout if isinstance(step, AwaitVolume | AwaitDevices) and not self.undo else 0.0


@dataclass(eq=False, slots=True)
class Barrier:
    """Binds with their IDs, and the state of their steps."""

    binds: list[tuple[int, Bind]]
    since: float
    carried_out: list[StepWrite] = field(default_factory=list)
    """Steps that succeeded or may have, in the order in which they ended."""
    outcome: Outcome | None = None
    """Why the binds are not written; None: no step has failed."""
    message: str = ""
    _running: int = 0
    _finished: int = 0
    """Binds whose steps have all succeeded."""

    def start(self) -> list[StepWrite]:
        """The first step of each bind."""
        self._finished = sum(not bind.steps for _, bind in self.binds)
        first = [StepWrite(self, bind, 0) for _, bind in self.binds if bind.steps]
        self._running = len(first)
        return first

    @property
    def passed(self) -> bool:
        """Whether all steps have succeeded: the binds may be written."""
        return self.outcome is None and self._finished == len(self.binds)

    @property
    def over(self) -> bool:
        """Whether it has failed and there is nothing left to undo."""
        return self.outcome is not None and not self._running and not self.carried_out

    def fail(self, outcome: Outcome, message: str) -> None:
        """Exclude the binds from being written; the first reason counts."""
        if self.outcome is None:
            self.outcome, self.message = outcome, message

    def ended(self, write: StepWrite, may_be_done: bool) -> list[StepWrite]:
        """Record the end of a step; returns the next writes. `may_be_done`: it succeeded, or its outcome is unknown."""
        self._running -= 1
        if may_be_done and not write.undo:
            self.carried_out.append(write)
        if self.outcome is None:
            if write.index + 1 < len(write.bind.steps):
                self._running += 1
                return [StepWrite(self, write.bind, write.index + 1)]
            self._finished += 1
            return []
        return self.undo()

    def withdrawn(self, write: StepWrite, may_be_done: bool) -> None:
        """Record that a step was withdrawn before it began. `may_be_done`: an earlier attempt may have succeeded."""
        self._running -= 1
        if may_be_done:
            self.carried_out.append(write)

    def undo(self) -> list[StepWrite]:
        """The next step to undo, if no other step is running."""
        if self._running or not self.carried_out:
            return []
        last = self.carried_out.pop()
        self._running = 1
        return [StepWrite(self, last.bind, last.index, undo=True)]


def after_steps(id: int, bind: Bind, now: float) -> Barrier:
    """The barrier of a bind whose steps have succeeded: they can be undone when the bind itself is rejected."""
    barrier = Barrier([(id, bind)], now)
    barrier.carried_out = [StepWrite(barrier, bind, index) for index in range(len(bind.steps))]
    return barrier


def with_barriers(first: int, operations: Iterable[Operation], now: float) -> tuple[list[Barrier], set[int]]:
    """The barriers of one statement, and the IDs of the binds in them."""
    members: dict[object, list[tuple[int, Bind]]] = {}
    for id, op in enumerate(operations, first):
        if isinstance(op, Bind) and (op.steps or op.barrier):
            members.setdefault(op.barrier or id, []).append((id, op))
    barriers = [Barrier(binds, now) for binds in members.values()]
    return barriers, {id for barrier in barriers for id, _ in barrier.binds}
