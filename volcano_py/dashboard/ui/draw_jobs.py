"""Draws the list of jobs: a row with state, pods, reason and a line of its time."""

from __future__ import annotations

from volcano_py.dashboard.jobs import JobList, JobRow
from volcano_py.dashboard.ui.markup import Child, Markup, badge, empty, joined, link, table, tag
from volcano_py.dashboard.ui.times import age, duration, stamp

TONES = {"waiting": "wait", "running": "good", "suspended": "plain", "ended": "done"}
_BAD = ("Failed", "Terminated", "Unknown")
LONGEST = 24 * 3600.0
"""Seconds that the lines of time show at most."""


def phase_badge(row: JobRow) -> Markup:
    """The phase of a job."""
    return badge(row.phase, "bad" if row.phase in _BAD else TONES[row.state])


def draw_jobs(page: JobList, now: float) -> Markup:
    """One page of the list."""
    if not page.rows:
        if sum(page.counts.values()):
            return empty("No job matches.", "Remove a part of the filter.")
        return empty("There are no jobs.", "Submit one: vcctl job run --name first --replicas 2 --requests cpu=1")
    began = max(now - LONGEST, min((row.created for row in page.rows if row.created), default=now))
    window = max(60.0, now - began)
    header = ["Job", "Queue", "Phase", "Pods", "Age", "Waits for", f"Last {duration(window)}"]
    rows: list[list[Child]] = [
        [
            joined(
                link(row.name, "jobs", row.namespace, *row.name.split("/"), class_="name"),
                tag("span", row.namespace, class_="under"),
            ),
            row.queue,
            phase_badge(row),
            f"{row.pods}" if row.state == "ended" else f"{row.running}/{row.pods}",
            stamp(row.created, now) if not row.created else tag("span", age(row.created, now)),
            tag("span", row.why, class_="why", title=row.why) if row.why else "",
            line(row, now, window),
        ]
        for row in page.rows
    ]
    return table("Jobs", header, rows, frozenset({3, 4}))


def line(row: JobRow, now: float, window: float) -> Markup:
    """When a job waited and ran, on a line from `window` seconds ago until now."""

    def at(moment: float) -> float:
        return min(100.0, max(0.0, 100 * (1 - (now - moment) / window)))

    end = row.ended or now
    started = row.started or (end if row.state in ("waiting", "suspended") else row.created)
    spoken = f"waited {duration(started - row.created)}"
    if row.started or row.state in ("running", "ended"):
        spoken += f", ran {duration(end - started)}"
    parts = [
        tag("i", class_="waited", style=f"left:{at(row.created):.2f}%;width:{at(started) - at(row.created):.2f}%"),
    ]
    if end > started:
        parts.append(tag("i", class_="ran", style=f"left:{at(started):.2f}%;width:{at(end) - at(started):.2f}%"))
    return tag("span", *parts, class_="life", role="img", aria_label=spoken, title=spoken)
