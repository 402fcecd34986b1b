"""Draws the page of reservations: a timeline, the Reservations, and the jobs for which nodes are held."""

from __future__ import annotations

from volcano_py.dashboard.reservations import (
    HeldRow,
    ReservationPage,
    ReservationRow,
    Timeline,
    TimelineBar,
    timeline_of,
)
from volcano_py.dashboard.ui.markup import Child, Markup, badge, empty, joined, link, table, tag
from volcano_py.dashboard.ui.times import age, clock, duration, time_of_day
from volcano_py.dashboard.watches import Missing

_TONES = {"Pending": "wait", "Active": "good", "Ended": "done", "Invalid": "bad"}
_LEGEND = (
    ("active", "a Reservation that is active"),
    ("reserved", "a Reservation"),
    ("held", "a job for which nodes are held, from its latest start on"),
    ("runs", "a job that runs, until its limit ends"),
)
_WORDS = dict(_LEGEND)
_MARKS = 4
_DAY = 86_400.0


def draw_reservations(page: ReservationPage, now: float, missing: Missing | None = None) -> Markup:
    """The page. `missing`: why Reservations are not listed."""
    if missing is not None:
        note = tag("p", missing.what, " ", tag("code", missing.remedy), class_="note", role="status")
        return joined(note, draw_reservations(page, now))
    if not page.reservations and not page.held and not page.running:
        return empty(
            "Nothing is reserved, and no job that runs states a limit.",
            "The plugins reservation and advance-reservation hold nodes; jobs state limits in volcano.sh/max-run-time.",
        )
    hidden = f"{page.hidden} more jobs with a limit end later." if page.hidden else ""
    return joined(
        tag("h2", "Timeline"),
        _timeline(timeline_of(page, now), now),
        tag("p", hidden, class_="muted") if hidden else None,
        tag("h2", "Reservations"),
        _reservations(page.reservations, now),
        tag("h2", "Jobs for which nodes are held"),
        _held(page.held, now),
    )


def _timeline(found: Timeline, now: float) -> Markup:
    if not found.bars:
        return empty("Nothing is reserved in the next hours.")
    legend = [tag("li", tag("i", class_=f"key span {name}", aria_hidden="true"), text) for name, text in _LEGEND]
    length = found.end - found.begin
    marks: list[Child] = [
        tag(
            "span",
            time_of_day(found.begin + length * part / _MARKS, days=length > _DAY),
            style=f"left:{part / _MARKS:.2%}",
        )
        for part in range(_MARKS)
    ]
    at = (now - found.begin) / length
    rows: list[Child] = [_bar(bar, found, at) for bar in found.bars]
    return joined(
        tag("ul", *legend, class_="legend"),
        tag("div", *rows, tag("div", *marks, class_="marks", aria_hidden="true"), class_="gantt", role="list"),
    )


def _bar(bar: TimelineBar, found: Timeline, now: float) -> Markup:
    length = found.end - found.begin
    left = max(0.0, (bar.start - found.begin) / length)
    width = max(0.0, min(1.0, (bar.end - found.begin) / length) - left)
    spoken = f"{bar.label}: {_WORDS[bar.kind]}, from {clock(bar.start)}, for {duration(bar.end - bar.start)}"
    namespace, _, name = bar.job.partition("/")
    return tag(
        "div",
        tag("span", link(name, "jobs", namespace, name) if bar.job else bar.label, class_="whose", title=bar.label),
        tag(
            "span",
            tag("i", class_=f"span {bar.kind}", style=f"left:{left:.2%};width:{width:.2%}"),
            tag("i", class_="now", style=f"left:{now:.2%}"),
            class_="line",
            role="img",
            aria_label=spoken,
            title=spoken,
        ),
        role="listitem",
    )


def _reservations(rows: tuple[ReservationRow, ...], now: float) -> Markup:
    if not rows:
        return empty("There are no Reservations.", "Create one with vcctl reservation create.")
    cells: list[list[Child]] = [
        [
            joined(row.name, tag("span", row.message, class_="under") if row.message else None),
            badge(row.phase or "not read yet", _TONES.get(row.phase, "plain")),
            joined(clock(row.start), tag("span", _until(row, now), class_="under")) if row.start else "–",
            row.nodes or "none yet",
            row.users,
            row.used or "–",
        ]
        for row in rows
    ]
    return table("Reservations", ["Name", "Phase", "From", "Nodes", "For", "In use"], cells)


def _until(row: ReservationRow, now: float) -> str:
    for moment, word in ((row.start, "begins"), (row.end, "ends")):
        if now < moment:
            return f"{word} in {duration(moment - now)}, lasts {duration(row.end - row.start)}"
    return f"ended {age(row.end, now)} ago"


def _held(rows: tuple[HeldRow, ...], now: float) -> Markup:
    if not rows:
        return empty("Nodes are held for no job.")
    cells: list[list[Child]] = [
        [
            _job(row.key),
            row.queue,
            age(row.created, now),
            joined(clock(row.start), tag("span", f"in {duration(row.start - now)}", class_="under"))
            if row.start
            else "–",
            row.why,
        ]
        for row in rows
    ]
    return table(
        "Jobs for which nodes are held", ["Job", "Queue", "Waits for", "Starts at the latest", "Reason"], cells
    )


def _job(key: str) -> Markup:
    namespace, _, name = key.partition("/")
    return joined(link(name, "jobs", namespace, name, class_="name"), tag("span", namespace, class_="under"))
