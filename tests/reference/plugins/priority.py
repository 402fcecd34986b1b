"""Higher priority first."""

from __future__ import annotations

from typing import Any

from tests.reference.job import Job
from tests.reference.session import Session
from tests.reference.task import Task


def priority(session: Session, arguments: dict[str, Any]) -> None:
    def higher_first(left: Job | Task, right: Job | Task) -> int:
        if left.priority == right.priority:
            return 0
        return -1 if left.priority > right.priority else 1

    session.votes.register("JobOrder", "priority", higher_first)
    session.votes.register("TaskOrder", "priority", higher_first)
