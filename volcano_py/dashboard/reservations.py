"""The page of reservations as data: what is kept for a time, for which jobs nodes are held, and when what runs ends.

Reservations are objects. That nodes are held for a gang is the reason of the job, and expected ends follow from the
limits that jobs state.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from volcano_py.api.meta import parse_time
from volcano_py.api.reservation import ACTIVE, INVALID, Reservation, period_of
from volcano_py.dashboard.jobs import JobRow
from volcano_py.scheduler.framework.advance.windows import users_of

MOST_RUNNING = 25
"""Jobs that run are bars of the timeline up to this number: those that end first."""
BEFORE, LEAST, MOST = 3600.0, 6 * 3600.0, 72 * 3600.0
"""Seconds of the timeline before now, and at least and at most after."""
_RESERVED = "Reserved"
_START = re.compile(r"it starts at (\d{4}-\d\d-\d\d) (\d\d:\d\d) UTC at the latest")


class ReservationRow(NamedTuple):
    """A Reservation. Times are seconds since the epoch, 0 for one that is not valid."""

    name: str
    phase: str
    start: float
    end: float
    nodes: str
    users: str
    used: str
    message: str


class HeldRow(NamedTuple):
    """A job for which nodes are held. `start`: when it starts at the latest; 0: not known."""

    key: str
    queue: str
    created: float
    start: float
    limit: float
    why: str


class TimelineBar(NamedTuple):
    """A time on the timeline. `kind`: reserved, active, held or runs; `job`: the key of the job, empty for none."""

    label: str
    kind: str
    start: float
    end: float
    job: str = ""


class ReservationPage(NamedTuple):
    """The page."""

    reservations: tuple[ReservationRow, ...]
    held: tuple[HeldRow, ...]
    running: tuple[TimelineBar, ...]
    hidden: int
    """Jobs that run with a limit and have no bar."""


class Timeline(NamedTuple):
    """What is drawn: bars between two times."""

    begin: float
    end: float
    bars: tuple[TimelineBar, ...]


def reservation_page(reservations: Iterable[Reservation], jobs: Iterable[JobRow]) -> ReservationPage:
    """The page, from Reservations and the rows of all jobs."""
    rows = sorted((reservation_row(each) for each in reservations), key=lambda row: (row.start, row.name))
    held: list[HeldRow] = []
    running: list[TimelineBar] = []
    for job in jobs:
        if job.state == "waiting" and job.code == _RESERVED:
            held.append(HeldRow(job.key, job.queue, job.created, latest_start(job.why), job.limit, job.why))
        elif job.state == "running" and job.limit and job.started:
            running.append(TimelineBar(job.key, "runs", job.started, job.started + job.limit, job.key))
    held.sort(key=lambda row: (row.start or float("inf"), row.key))
    running.sort(key=lambda bar: (bar.end, bar.label))
    return ReservationPage(tuple(rows), tuple(held), tuple(running[:MOST_RUNNING]), len(running[MOST_RUNNING:]))


def reservation_row(found: Reservation) -> ReservationRow:
    """One Reservation; what is invalid in it is its message."""
    spec, status = found.spec, found.status
    try:
        start, end = period_of(spec)
        problem = ""
    except ValueError as error:
        start, end, problem = 0.0, 0.0, str(error)
    names = status.nodes or spec.nodes or []
    nodes = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    used = ", ".join(f"{name} {amount}" for name, amount in (status.used or {}).items())
    phase = INVALID if problem else status.phase
    return ReservationRow(
        found.metadata.name, phase, start, end, nodes, users_of(spec), used, problem or status.message
    )


def latest_start(why: str) -> float:
    """When a job with a reservation starts at the latest, from the sentence of its reason; 0: it states none."""
    match = _START.search(why)
    return parse_time(f"{match[1]}T{match[2]}:00Z") if match else 0.0


def timeline_of(page: ReservationPage, now: float) -> Timeline:
    """The bars from an hour ago on, as far as they reach, up to three days."""
    bars = [
        TimelineBar(row.name, "active" if row.phase == ACTIVE else "reserved", row.start, row.end)
        for row in page.reservations
        if row.end > now - BEFORE
    ]
    # without a limit, a job is drawn from its start to the end of the timeline
    bars += [
        TimelineBar(row.key, "held", row.start, row.start + (row.limit or MOST), row.key)
        for row in page.held
        if row.start
    ]
    bars += [bar for bar in page.running if bar.end > now - BEFORE]
    end = min(max([now + LEAST, *(bar.end for bar in bars)]), now + MOST)
    return Timeline(now - BEFORE, end, tuple(bar for bar in bars if bar.start < end))
