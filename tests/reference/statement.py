"""A row of steps that are all taken or all taken back. Volcano: Statement."""

from __future__ import annotations

from tests.reference.node import Node, NodeError
from tests.reference.session import Session
from tests.reference.task import Task


class Statement:
    def __init__(self, session: Session) -> None:
        self.session = session
        self.steps: list[tuple[str, Task]] = []

    def allocate(self, task: Task, node: Node) -> None:
        self.session.place(task, node, "Allocated")
        self.steps.append(("Allocate", task))

    def pipeline(self, task: Task, node: Node, eviction_occurred: bool = False) -> None:
        task.eviction_occurred = eviction_occurred
        self.session.place(task, node, "Pipelined")
        self.steps.append(("Pipeline", task))

    def evict(self, task: Task) -> None:
        self.session.start_eviction(task)
        self.steps.append(("Evict", task))

    def merge(self, other: Statement) -> None:
        self.steps += other.steps
        other.steps = []

    def discard(self) -> None:
        for kind, task in reversed(self.steps):
            task.last_try = (task.status, task.node, task.eviction_occurred)
            if kind == "Evict":
                self.session.take_back_eviction(task)
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
