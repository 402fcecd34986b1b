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

    def pipeline(self, task: Task, node: Node) -> None:
        self.session.place(task, node, "Pipelined")
        self.steps.append(("Pipeline", task))

    def discard(self) -> None:
        for _, task in reversed(self.steps):
            self.session.unplace(task)
        self.steps = []

    def commit(self) -> None:
        for kind, task in self.steps:
            if kind == "Allocate":
                try:
                    self.session.bind(task)
                except NodeError:
                    self.session.unplace(task)
        self.steps = []
