"""cdp: protects pods for a while after they have started."""

from __future__ import annotations

from typing import Any

from tests.reference.conf import duration
from tests.reference.session import Session
from tests.reference.task import Task, timestamp
from tests.reference.votes import PERMIT

KEY = "volcano.sh/cooldown-time"


def cdp(session: Session, arguments: dict[str, Any]) -> None:
    def cooled_down(evictor: Task, candidates: list[Task]) -> tuple[list[Task], int]:
        return [c for c in candidates if not _is_hot(c, session.now)], PERMIT

    session.votes.register("Preemptable", "cdp", cooled_down)
    session.votes.register("Reclaimable", "cdp", cooled_down)


def _is_hot(task: Task, now: float) -> bool:
    meta, status = task.pod["metadata"], task.pod["status"]
    marks = {**(meta.get("annotations") or {}), **(meta.get("labels") or {})}
    cooldown = duration(marks.get(KEY))
    if cooldown is None or status.get("phase") != "Running":
        return False
    for c in status.get("conditions") or []:
        if c["type"] == "PodScheduled" and c["status"] == "True":
            return timestamp({"creationTimestamp": c["lastTransitionTime"]}) + cooldown > now
    return False
