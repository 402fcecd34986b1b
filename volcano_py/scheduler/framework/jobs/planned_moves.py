"""The moves that a session plans or makes so that a waiting gang starts. Not in Volcano; plugin consolidate.

`explain` reads them from the session.
"""

from __future__ import annotations

from msgspec import Struct

from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.task import Task


class GangMoves(Struct):
    """What starts a gang."""

    job: str
    moved: list[tuple[Task, int]]
    """The pods that are evicted, each with the column of a node that has capacity for it."""
    placed: list[tuple[Task, int]]
    """The pods of the gang, and the columns of their nodes."""
    lost: float = 0.0
    """The work that is lost, in seconds of the whole cluster."""
    made: bool = False
    """Whether the pods are evicted; otherwise it is a dry run."""

    def text(self, names: list[str]) -> str:
        """The pods and where they fit, the first of them by name."""
        shown = [f"{task.namespace}/{task.name} fits {names[node]}" for task, node in self.moved[:3]]
        return "; ".join(shown) + (f"; and {len(self.moved) - 3} more" if len(self.moved) > 3 else "")


class PlannedMoves:
    """Those of a session, by job."""

    def __init__(self) -> None:
        self.of: dict[str, GangMoves] = {}


def planned_moves_of(session: Session) -> dict[str, GangMoves]:
    """By job; empty if the plugin is not configured."""
    return session.shared(PlannedMoves, PlannedMoves).of
