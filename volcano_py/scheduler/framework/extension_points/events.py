"""The event handlers of a session. Volcano: AddEventHandler, with AllocateFunc and DeallocateFunc."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from volcano_py.scheduler.framework.extension_points.table import ExtensionPoints
from volcano_py.scheduler.model.task import Task

Allocated = Callable[[Task, int], str | None]
"""(task, node column); text is an error, after which the placement is undone."""
Deallocated = Callable[[Task, int], None]


class Handler(NamedTuple):
    """The event handlers of one registration."""

    plugin: str
    allocate: Allocated | None
    deallocate: Deallocated | None
    simulated: bool
    leaves_traces: bool


class Events(ExtensionPoints):
    """Plugins follow what the session does to tasks."""

    def __init__(self) -> None:
        super().__init__()
        self.handlers: list[Handler] = []
        self._in_dry_run = False

    def add_event_handler(
        self,
        allocate: Allocated | None = None,
        deallocate: Deallocated | None = None,
        *,
        simulated: bool = True,
        leaves_traces: bool = False,
    ) -> None:
        """Follow the session's placements, evictions, and what takes them back.

        A plugin without `deallocate` counts placements for good, so that dry runs must be made exactly as Volcano makes
        them; the same holds for one whose `deallocate` does not undo everything (`leaves_traces`). `simulated`: whether
        it follows dry runs of topology-aware preemption as well.

        Called: `allocate` when a task gets a node or an eviction is taken back; `deallocate` when a task is evicted or
        a placement is taken back. The node is a column of `session.table`.
        Combination: all handlers are called, in the order of registration; the last error text counts.
        Flag: none.
        On error: the placement fails with the error; an eviction goes on.
        """
        traces = leaves_traces or (allocate is not None and deallocate is None)
        self.handlers.append(Handler(self.registering, allocate, deallocate, simulated, traces))

    @property
    def placements_leave_traces(self) -> bool:
        """Some plugin counts placements and does not take them back, or not completely."""
        return any(h.leaves_traces for h in self.handlers)

    @contextmanager
    def dry_run(self) -> Iterator[None]:
        """What moves meanwhile is simulated: handlers that do not follow simulations are left out."""
        self._in_dry_run = True
        try:
            yield
        finally:
            self._in_dry_run = False

    def _allocated(self, task: Task, node: int) -> str | None:
        error: str | None = None
        for handler in self.handlers:
            if handler.allocate is None or (self._in_dry_run and not handler.simulated):
                continue
            try:
                error = handler.allocate(task, node) or error
            except Exception as e:
                self.callbacks.fault(handler.plugin, "allocate_event", e, task.key)
                error = f"plugin {handler.plugin} failed: {e}"
        return error

    def _deallocated(self, task: Task, node: int) -> None:
        for handler in self.handlers:
            if handler.deallocate is None or (self._in_dry_run and not handler.simulated):
                continue
            try:
                handler.deallocate(task, node)
            except Exception as e:
                self.callbacks.fault(handler.plugin, "deallocate_event", e, task.key)
