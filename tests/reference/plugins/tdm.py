"""tdm: nodes of revocable zones, which pods may use at certain hours."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.reference.conf import duration
from tests.reference.job import Job
from tests.reference.node import Node
from tests.reference.session import Session
from tests.reference.task import Task
from tests.reference.votes import PERMIT, REJECT, PredicateError, ScoreError

ZONE = "volcano.sh/revocable-zone"
LEAST = "volcano.sh/jdb-min-available"
MOST = "volcano.sh/jdb-max-unavailable"
PREFIX = "tdm.revocable-zone."


def tdm(session: Session, arguments: dict[str, Any]) -> None:
    hours = {key.removeprefix(PREFIX): value for key, value in arguments.items() if key.startswith(PREFIX)}
    period = duration(arguments.get("tdm.evict.period"))
    period = 60.0 if period is None else period

    def zone(node: Node) -> str:
        return node.labels.get(ZONE, "")

    def active(name: str) -> bool:
        return name in hours and within(hours[name], session.now)

    def predicate(task: Task, node: Node) -> None:
        if not zone(node):
            return
        if not active(zone(node)):
            raw = hours.get(zone(node))
            known = isinstance(raw, str) and times_of(raw) is not None
            text = f"current time beyond revocable zone {zone(node)}:{raw}"
            raise PredicateError(text if known else f"revocable zone {zone(node)} not support", unresolvable=True)
        if not task.revocable_zone:
            raise PredicateError("not allow to dispatch to revocable node", unresolvable=True)

    def node_order(task: Task, node: Node) -> float:
        if not zone(node):
            return 0.0
        if not active(zone(node)):
            raise ScoreError
        return 100.0 if task.revocable_zone else 0.0

    def limited_per_job(tasks: list[Task]) -> list[Task]:
        by_job: dict[str, list[Task]] = {}
        for task in tasks:
            by_job.setdefault(task.job, []).append(task)
        found = []
        for uid, own in by_job.items():
            found += own[: most_victims(session.jobs[uid])]
        return found

    def preemptable(preemptor: Task, candidates: list[Task]) -> tuple[list[Task] | None, int]:
        if preemptor.preemptable or preemptor.revocable_zone:
            return None, REJECT
        may_be_evicted = []
        for task in candidates:
            if task.preemptable and task.status == "Running" and not zone(session.nodes[task.node]):
                may_be_evicted.append(task)
        return limited_per_job(may_be_evicted), PERMIT

    def victim_tasks(tasks: list[Task]) -> list[Task]:
        last = session.memory.get("tdm")
        if last is not None and last + period > session.now:
            return []
        session.memory["tdm"] = session.now
        found = []
        for name in hours:
            if active(name):
                continue
            may_be_evicted = []
            for node in session.nodes.values():
                if zone(node) == name:
                    may_be_evicted += [t for t in session.on_node(node) if t.preemptable and t.status == "Running"]
            found += limited_per_job(may_be_evicted)
        return found

    def preemptable_last(left: Job, right: Job) -> int:
        return left.preemptable - right.preemptable

    def starving(job: Job) -> bool:
        return not job.preemptable and bool(job.with_status("Pending"))

    votes = session.votes
    votes.register("Predicate", "tdm", predicate)
    votes.register("NodeOrder", "tdm", node_order)
    votes.register("Preemptable", "tdm", preemptable)
    votes.register("VictimTasks", "tdm", victim_tasks)
    votes.register("JobOrder", "tdm", preemptable_last)
    votes.register("JobPipelined", "tdm", lambda job: PERMIT if job.is_pipelined() else REJECT)
    votes.register("JobStarving", "tdm", starving)


def times_of(text: str) -> tuple[int, int, int, int] | None:
    """Hours and minutes of `HH:MM-HH:MM`; None if they are invalid."""
    found = re.fullmatch(r"(\d\d?):(\d\d)-(\d\d?):(\d\d)", text)
    if found is None:
        return None
    a, b, c, d = map(int, found.groups())
    return None if a > 23 or b > 59 or c > 23 or d > 59 else (a, b, c, d)


def within(text: Any, now: float) -> bool:
    """Whether it is between the two times of today, `HH:MM-HH:MM`; the second is tomorrow's if it is not later."""
    times = times_of(text)
    if times is None:
        return False
    a, b, c, d = times
    today = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    start, end = today + timedelta(hours=a, minutes=b), today + timedelta(hours=c, minutes=d)
    if start >= end:
        end += timedelta(days=1)
    return start.timestamp() <= now <= end.timestamp()


def most_victims(job: Job) -> int:
    total, running = len(job.tasks), len(job.with_status("Running"))
    finished = len(job.with_status("Succeeded", "Failed"))
    if job.annotations.get(LEAST):
        least = count(job.annotations[LEAST], total)
        if running >= least:
            return running - least
    elif job.annotations.get(MOST):
        most = count(job.annotations[MOST], total)
        unavailable = total - finished - running
        return 0 if unavailable >= most else most - unavailable
    return 1


def count(text: str, total: int) -> int:
    """A number or a percentage; invalid text counts as 0."""
    if not re.fullmatch(r"[+-]?[0-9]+%?", text):
        return 0
    if text.endswith("%"):
        return math.ceil(int(text[:-1]) * total / 100)
    return int(text)
