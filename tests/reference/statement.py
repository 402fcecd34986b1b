"""A sequence of steps that are committed or discarded together. Volcano: Statement."""

from __future__ import annotations

from typing import NamedTuple

from tests.reference.node import Node, NodeError
from tests.reference.session import Session
from tests.reference.task import Task


class Saved(NamedTuple):
    """One step, to be repeated. Volcano clones the task, with its earlier messages."""

    kind: str
    task: Task
    node: str
    eviction_occurred: bool
    last_try: tuple[str, str, bool] | None


class Statement:
    def __init__(self, session: Session) -> None:
        self.session = session
        self.steps: list[tuple[str, Task]] = []

    def allocate(self, task: Task, node: Node) -> None:
        """Raises NodeError, and leaves nothing."""
        self.session.place(task, node, "Allocated")
        self.steps.append(("Allocate", task))

    def pipeline(self, task: Task, node: Node, eviction_occurred: bool = False) -> None:
        """Raises NodeError, and leaves nothing."""
        task.eviction_occurred = eviction_occurred
        self.session.place(task, node, "Pipelined")
        self.steps.append(("Pipeline", task))

    def evict(self, task: Task) -> None:
        self.session.start_eviction(task)
        self.steps.append(("Evict", task))

    def save(self) -> list[Saved]:
        """Volcano: SaveOperations."""
        return [Saved(kind, t, t.node, t.eviction_occurred, t.last_try) for kind, t in self.steps]

    def recover(self, saved: list[Saved]) -> None:
        """Volcano: RecoverOperations. Raises NodeError at the first step that fails."""
        for step in saved:
            step.task.last_try = step.last_try
            node = self.session.nodes[step.node]
            if step.kind == "Evict":
                self.evict(step.task)
            elif step.kind == "Allocate":
                self.allocate(step.task, node)
            else:
                self.pipeline(step.task, node, step.eviction_occurred)

    def merge(self, other: Statement) -> None:
        self.steps += other.steps
        other.steps = []

    def discard(self) -> None:
        for kind, task in reversed(self.steps):
            task.last_try = (task.status, task.node, task.eviction_occurred)
            if kind == "Evict":
                self.session.undo_eviction(task)
            else:
                self.session.unplace(task)
        self.steps = []

    def commit(self) -> None:
        for kind, task in self.steps:
            task.last_try = None
            if kind == "Evict":
                self.session.evicted.append(task.key)
            elif kind == "Allocate":
                try:
                    self.session.bind(task)
                except NodeError:
                    self.session.unplace(task)
        self.steps = []
