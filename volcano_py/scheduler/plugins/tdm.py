"""tdm: nodes that the cluster may use at certain hours only. Volcano: plugin tdm (time division multiplexing).

A node with the label `volcano.sh/revocable-zone` accepts only pods that permit it (annotation
`volcano.sh/revocable-zone: "*"` or `volcano.sh/preemptable: "true"`), within the zone's hours (UTC). After these hours
the plugin evicts the preemptable pods of the zone, a few at a time.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import numpy as np
from msgspec import field
from numpy.typing import NDArray

from volcano_py.api import names
from volcano_py.api.duration import parse_duration
from volcano_py.scheduler.framework.callbacks import Vote
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.plugin import Plugin, PluginArguments
from volcano_py.scheduler.framework.search.fit_errors import FitCode, Reason
from volcano_py.scheduler.framework.search.node_rules import DOMAIN, Codes, Floats, Scope
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.task import Task, flag

_PREFIX = "tdm.revocable-zone."
_BUDGET = re.compile(r"[+-]?[0-9]+%?")
_CLOCK = re.compile(r"([0-9]{1,2}):([0-9]{2})")


def window(text: object, now: float) -> tuple[float, float] | None:
    """Today's hours of a zone in seconds since the epoch, both ends included; None if the text is invalid."""
    if not isinstance(text, str) or text.count("-") != 1:
        return None
    start, _, end = text.strip().partition("-")
    midnight = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    try:
        opens, closes = (midnight + _clock(part) for part in (start, end))
    except ValueError:
        return None
    if opens >= closes:
        closes += timedelta(days=1)
    return opens.timestamp(), closes.timestamp()


def _clock(text: str) -> timedelta:
    """One or two digits, a colon, two digits: the format that Go parses as `15:04`."""
    found = _CLOCK.fullmatch(text)
    if found is None or int(found[1]) > 23 or int(found[2]) > 59:
        raise ValueError(text)
    return timedelta(hours=int(found[1]), minutes=int(found[2]))


def changes(raw: Any, now: float) -> tuple[float, ...]:
    """When a zone with these hours opens or closes next, among other times; none for invalid hours."""
    hours = window(raw, now)
    if hours is None:
        return ()
    day = 24 * 3600
    # The last second still belongs to the hours; at midnight (UTC) those of the next day apply.
    return hours[0], hours[1] + 1, (now // day + 1) * day


def zone_of(task: Task) -> str:
    """`*` if the pod may run on revocable nodes, else ""."""
    annotations = task.pod.metadata.annotations or {}
    if names.REVOCABLE_ZONE in annotations:
        return "*" if annotations[names.REVOCABLE_ZONE] == "*" else ""
    return "*" if flag(annotations, {}, names.PREEMPTABLE, absent=False) else ""


@dataclass
class LastEviction:
    """When tdm last evicted pods from zones outside their hours, in seconds since the epoch."""

    at: float | None = None


class Tdm(Plugin):
    """See `Arguments`."""

    name = "tdm"
    prefixes = (_PREFIX,)

    class Arguments(PluginArguments):
        period: str = field(default="1m", name="tdm.evict.period")
        """The least time between two evictions of pods from zones that are outside their hours."""
        extra: dict[str, Any] = {}
        """`tdm.revocable-zone.<zone>`: the hours of a zone, `HH:MM-HH:MM`."""

    arguments: Arguments

    def __init__(self, arguments: Mapping[str, Any] | None = None) -> None:
        super().__init__(arguments)
        read = self.arguments
        self.hours = {key.removeprefix(_PREFIX): value for key, value in read.extra.items()}
        try:
            self.period = parse_duration(read.period)
        except ValueError as e:
            self.period = 60.0
            self.warn(f"argument tdm.evict.period: {e}; 1m stays in force")

    def closed_reason(self, zone: str, now: float) -> str:
        """Why a zone accepts no pod now; "" within its hours."""
        raw = self.hours.get(zone)
        hours = window(raw, now)
        if hours is None:
            return f"revocable zone {zone} not support"
        if not hours[0] <= now <= hours[1]:
            return f"current time beyond revocable zone {zone}:{raw}"
        return ""

    def on_session_open(self, session: Session) -> None:
        zones = [(n.metadata.labels or {}).get(names.REVOCABLE_ZONE, "") for n in session.table.objects]
        for raw in self.hours.values():
            for change in changes(raw, session.now):
                session.wake_at(change)
        closed = {zone: self.closed_reason(zone, session.now) for zone in {*zones, *self.hours} if zone}

        def preemptable(preemptor: Task, candidates: list[Task]) -> list[Task]:
            if preemptor.preemptable or zone_of(preemptor):
                return []
            by_job: dict[str, list[Task]] = {}
            for t in candidates:
                node = session.node_of(t)
                outside = node is not None and not zones[node]
                if t.preemptable and session.status(t) == st.RUNNING and outside and t.job in session.jobs:
                    by_job.setdefault(t.job, []).append(t)
            return _few_of_each(session, by_job)

        def victims(_: list[Task]) -> list[Task]:
            last = session.cluster.keep(LastEviction)
            if last.at is not None and 0 <= session.now - last.at < self.period:
                session.wake_at(last.at + self.period)
                return []
            last.at = session.now
            found: list[Task] = []
            for zone in self.hours:
                if not closed[zone]:
                    continue
                by_job: dict[str, list[Task]] = {}
                for node, of in enumerate(zones):
                    for t in session.on_node(node) if of == zone else ():
                        if t.preemptable and session.status(t) == st.RUNNING and t.job in session.jobs:
                            by_job.setdefault(t.job, []).append(t)
                found += _few_of_each(session, by_job)
            if found:
                session.wake_at(session.now + self.period)
            return found

        session.add_filters(_Filter(zones, closed))
        session.add_scores(_Score(zones, closed))
        session.add_preemptable(preemptable)
        session.add_victim_tasks(victims)
        session.add_job_order(lambda job: int(job.model.preemptable), own=True)
        session.add_job_pipelined(lambda job: Vote.PERMIT if job.is_pipelined() else Vote.REJECT)
        session.add_job_starving(lambda j: not j.model.preemptable and j.counts[st.PENDING] > 0)


def _few_of_each(session: Session, by_job: dict[str, list[Task]]) -> list[Task]:
    careful = session.deviations.protections_hold
    return [t for uid, tasks in by_job.items() for t in tasks[: most_victims(session.jobs[uid], careful)]]


def most_victims(job: SessionJob, careful: bool = True) -> int:
    """How many pods of a job may be evicted at once: by its disruption budget annotations, else one.

    An invalid budget counts as no budget if `careful` is set; Volcano counts it as 0.
    """
    annotations = job.pod_group.metadata.annotations or {}
    total, running = len(job.tasks), job.counts[st.RUNNING]
    least, most = annotations.get(names.JDB_MIN_AVAILABLE), annotations.get(names.JDB_MAX_UNAVAILABLE)
    text = least or most or ""
    if careful and not _BUDGET.fullmatch(text):
        return 1
    if least:
        minimum = _count(least, total)
        return running - minimum if running >= minimum else 1
    if most:
        unavailable = total - job.counts[st.SUCCEEDED] - job.counts[st.FAILED] - running
        return max(_count(most, total) - unavailable, 0)
    return 1


def _count(text: str, total: int) -> int:
    """A number, or a percentage of all tasks rounded up; 0 for any other text."""
    if not _BUDGET.fullmatch(text):
        return 0
    return math.ceil(total * int(text[:-1]) / 100) if text.endswith("%") else int(text)


class _Filter:
    name = "tdm"
    prefixes = (_PREFIX,)
    scope: Literal[Scope.DOMAIN] = DOMAIN

    def __init__(self, zones: list[str], closed: dict[str, str]) -> None:
        texts = ["not allow to dispatch to revocable node", *sorted({t for t in closed.values() if t})]
        self.reasons = [Reason(text, FitCode.UNRESOLVABLE) for text in texts]
        number = {"": 1} | {text: i + 1 for i, text in enumerate(texts) if i}
        self._guest = np.array([number[closed[z]] if z and closed[z] else 0 for z in zones], dtype=np.int8)
        self._other = np.array([number[closed[z]] if z else 0 for z in zones], dtype=np.int8)

    def applies(self, task: Task) -> bool:
        return bool(self._other.any())

    def filter(self, task: Task) -> Codes:
        return self._guest if zone_of(task) else self._other


class _Score:
    """Prefer revocable nodes for pods that permit them. A node whose zone is closed has no score, neither from this
    plugin nor from others; such a node is scored only if `enablePredicate` is off."""

    name = "tdm"
    prefixes = (_PREFIX,)
    scope: Literal[Scope.DOMAIN] = DOMAIN
    batch = False

    def __init__(self, zones: list[str], closed: dict[str, str]) -> None:
        self._lent = np.array([bool(z) for z in zones], dtype=bool)
        self._closed = np.array([bool(z and closed[z]) for z in zones], dtype=bool)
        self.may_fail = bool(self._closed.any())

    def applies(self, task: Task) -> bool:
        return bool(self._lent.any())

    def constant(self, task: Task) -> float | None:
        return None if self.may_fail or zone_of(task) else 0.0

    def score(self, task: Task, candidates: NDArray[np.intp]) -> Floats:
        rates = np.where(self._lent[candidates] & bool(zone_of(task)), 100.0, 0.0)
        rates[self._closed[candidates]] = np.nan
        return rates
