"""The event handlers of a session. Volcano: AddEventHandler, with AllocateFunc and DeallocateFunc."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from volcano_py.scheduler.framework.callbacks import Callbacks
from volcano_py.scheduler.model.jobs.task import Task

Allocated = Callable[[Task, int], str | None]
"""(task, node column); a returned text is an error: the placement is undone."""
Deallocated = Callable[[Task, int], None]
AllocatedRun = Callable[[Sequence[Task], Sequence[int]], None]
"""(tasks, the node column of each): equal tasks of one job."""
Held = Callable[[Task, int], None]
"""(task, +1 or -1): capacity of a node is held for a task that stays pending, or no longer."""


class Handler(NamedTuple):
    """The event handlers of one registration."""

    plugin: str
    allocate: Allocated | None
    deallocate: Deallocated | None
    simulated: bool
    leaves_traces: bool
    allocate_run: AllocatedRun | None = None
    concerns: Callable[[Task], bool] | None = None
    held: Held | None = None


class Events:
    """Calls the plugins when the session places or evicts tasks."""

    def __init__(self, callbacks: Callbacks) -> None:
        self.callbacks = callbacks
        self.handlers: list[Handler] = []
        self._of_class: dict[int, list[Handler]] = {}
        """The handlers that concern the tasks of a class, by the ID of the class."""
        self._in_dry_run = False

    def add_event_handler(
        self,
        allocate: Allocated | None = None,
        deallocate: Deallocated | None = None,
        *,
        simulated: bool = True,
        leaves_traces: bool = False,
        allocate_run: AllocatedRun | None = None,
        concerns: Callable[[Task], bool] | None = None,
        held: Held | None = None,
    ) -> None:
        """Register handlers for the session's placements and evictions, and for their undo.

        A plugin without `deallocate` never subtracts placements; dry runs must then run exactly as in Volcano. The same
        holds for a plugin whose `deallocate` does not undo everything (`leaves_traces`). `simulated`: whether the
        handlers are also called in dry runs of topology-aware preemption.

        `allocate_run` does for many equal tasks of one job at once what `allocate` would do for each, and never rejects
        one; without it equal tasks are placed one by one. `concerns`: whether the handler does anything for a task; the
        result must be the same for all tasks of a class. The handlers are then not called for other tasks.

        Called: `allocate` when a task gets a node or an eviction is undone; `deallocate` when a task is evicted or
        a placement is undone. The node is a column of `session.table`. `held` when allocate holds capacity that was
        freed for a pending task, and when it releases that capacity to place the task or at its end.
        Combination: all handlers are called, in the order of registration; the last error text counts.
        Flag: none.
        On error: the placement fails with the error; an eviction goes on.
        """
        traces = leaves_traces or (allocate is not None and deallocate is None)
        made = Handler(self.callbacks.plugin, allocate, deallocate, simulated, traces, allocate_run, concerns, held)
        self.handlers.append(made)
        self._of_class.clear()

    def _concerned(self, task: Task) -> list[Handler]:
        """The handlers to call for a task."""
        found = self._of_class.get(task.spec_class.id)
        if found is None:
            found = self._of_class[task.spec_class.id] = [h for h in self.handlers if self._concerns(h, task)]
        return found

    def _concerns(self, handler: Handler, task: Task) -> bool:
        try:
            return handler.concerns is None or handler.concerns(task)
        except Exception as e:
            self.callbacks.fault(handler.plugin, "allocate_event", e, task.key)
            return True

    @property
    def placements_leave_traces(self) -> bool:
        """Whether a plugin counts placements and does not undo them, or not completely."""
        return any(h.leaves_traces for h in self.handlers)

    @property
    def in_dry_run(self) -> bool:
        """Whether moves are simulated, see `dry_run`."""
        return self._in_dry_run

    @contextmanager
    def dry_run(self) -> Iterator[None]:
        """Moves within this context are simulated: handlers without `simulated` are not called."""
        self._in_dry_run = True
        try:
            yield
        finally:
            self._in_dry_run = False

    def allocated(self, task: Task, node: int) -> str | None:
        """A task got a node, or its eviction was undone. Returns the last error of a handler."""
        error: str | None = None
        for handler in self._concerned(task):
            allocate = handler.allocate
            if allocate is None or (self._in_dry_run and not handler.simulated):
                continue
            try:
                error = allocate(task, node) or error
            except Exception as e:
                self.callbacks.fault(handler.plugin, "allocate_event", e, task.key)
                error = f"plugin {handler.plugin} failed: {e}"
        return error

    def run_handlers(self, task: Task) -> list[Handler] | None:
        """The handlers to call for a run of tasks equal to this one; None: one of them handles only single tasks."""
        found = []
        for handler in self._concerned(task):
            if handler.allocate is None:
                continue
            if handler.allocate_run is None:
                return None
            found.append(handler)
        return found

    def deallocated(self, task: Task, node: int, handlers: Sequence[Handler] | None = None) -> None:
        """A task was evicted, or its placement undone.

        `handlers`: those that were called for the placement; None: all that concern the task.
        """
        for handler in self._concerned(task) if handlers is None else handlers:
            if handler.deallocate is None or (self._in_dry_run and not handler.simulated):
                continue
            try:
                handler.deallocate(task, node)
            except Exception as e:
                self.callbacks.fault(handler.plugin, "deallocate_event", e, task.key)

    def held(self, task: Task, sign: int) -> None:
        """Capacity is held for a pending task (+1), or no longer (-1)."""
        for handler in self._concerned(task):
            if handler.held is None:
                continue
            try:
                handler.held(task, sign)
            except Exception as e:
                self.callbacks.fault(handler.plugin, "allocate_event", e, task.key)
