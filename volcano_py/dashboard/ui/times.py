"""Times as pages show them."""

from __future__ import annotations

from datetime import UTC, datetime

from volcano_py.cli.columns import human_duration
from volcano_py.dashboard.ui.markup import Markup, tag


def age(moment: float, now: float) -> str:
    """The time since a moment as kubectl prints it; a dash for none."""
    return human_duration(max(0.0, now - moment)) if moment else "–"


def stamp(moment: float, now: float) -> Markup:
    """The age of a moment, with its time as a title."""
    if not moment:
        return tag("span", "–", class_="muted")
    exact = datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return tag("time", f"{age(moment, now)} ago", title=exact, datetime=exact)


def clock(moment: float) -> str:
    """A time of day, with the date where it matters to read it."""
    return datetime.fromtimestamp(moment, UTC).strftime("%b %d, %H:%M:%S UTC")


def time_of_day(moment: float, *, days: bool) -> str:
    """A time to the minute in UTC, with the date if days matter."""
    return datetime.fromtimestamp(moment, UTC).strftime("%b %d, %H:%M" if days else "%H:%M")


def duration(seconds: float) -> str:
    """A length of time."""
    return human_duration(max(0.0, seconds))


def milliseconds(value: float | None) -> str:
    """A time of a cycle: 3.2 ms, 480 ms, 1.25 s."""
    if value is None:
        return "–"
    if value == float("inf"):
        return "over 5 s"
    if value >= 1000:
        return f"{value / 1000:.2f} s"
    return f"{value:.1f} ms" if value < 100 else f"{value:.0f} ms"
