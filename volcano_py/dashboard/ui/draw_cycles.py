"""Draws the page of cycles: figures, a chart of the last minutes, and the time of each action."""

from __future__ import annotations

from volcano_py.dashboard.cycles import CyclePage, Point
from volcano_py.dashboard.ui.markup import Child, Markup, empty, joined, table, tag
from volcano_py.dashboard.ui.times import duration, milliseconds

_WIDTH, _HEIGHT = 720, 160
_LEFT, _BOTTOM = 56, 20


def draw_cycles(page: CyclePage | None, problem: str) -> Markup:
    """The page; `problem`: why there is no newer sample."""
    note = tag("p", problem, class_="note", role="status") if problem else None
    if page is None:
        return note or empty("Waiting for the first sample.")
    return joined(
        note,
        tag(
            "div",
            tile("cycles", f"{page.cycles:,}"),
            tile("mean", milliseconds(page.mean)),
            tile("median at most", milliseconds(page.median)),
            tile("95 % take at most", milliseconds(page.slow)),
            tile("rounds of evictions", f"{page.evicting:,}"),
            class_="tiles",
        ),
        tag("h2", "Mean time of a cycle"),
        chart(page.points),
        tag("h2", "Actions"),
        _actions(page),
    )


def tile(label: str, value: str) -> Markup:
    """A figure with its name."""
    return tag("div", tag("b", value), tag("span", label), class_="tile")


def _actions(page: CyclePage) -> Markup:
    if not page.actions:
        return empty("No action has run yet.")
    rows: list[list[Child]] = [[name, f"{runs:,}", milliseconds(mean)] for name, runs, mean in page.actions]
    return table("Actions", ["Action", "Runs", "Mean time"], rows, frozenset({1, 2}))


def chart(points: tuple[Point, ...]) -> Markup:
    """A bar for each sample; samples without a cycle have none."""
    seen = [p.mean for p in points if p.mean is not None]
    if not seen:
        return empty("No cycle since this page was opened.", "The scheduler runs one when something changes.")
    top = max(seen) * 1.1
    first, last = points[0].time, points[-1].time
    span = max(60.0, last - first)
    wide = (_WIDTH - _LEFT) / max(12, len(points)) - 1
    shapes = []
    for part in (0.0, 0.5, 1.0):
        y = (_HEIGHT - _BOTTOM) * (1 - part / 1.1)
        shapes.append(tag("line", x1=_LEFT, x2=_WIDTH, y1=f"{y:.1f}", y2=f"{y:.1f}", class_="grid"))
        text = milliseconds(max(seen) * part)
        shapes.append(tag("text", text, x=_LEFT - 6, y=f"{y + 4:.1f}", text_anchor="end"))
    for p in points:
        if p.mean is None:
            continue
        x = _LEFT + (_WIDTH - _LEFT - wide) * (1 - (last - p.time) / span)
        high = max(1.0, (_HEIGHT - _BOTTOM) * p.mean / top)
        about = tag("title", f"{p.cycles} cycles, {milliseconds(p.mean)} each")
        y = _HEIGHT - _BOTTOM - high
        bar = tag("rect", x=f"{x:.1f}", y=f"{y:.1f}", width=f"{wide:.1f}", height=f"{high:.1f}")
        shapes.append(tag("g", bar, about))
    shapes.append(tag("text", f"{duration(span)} ago", x=_LEFT, y=_HEIGHT - 4))
    shapes.append(tag("text", "now", x=_WIDTH, y=_HEIGHT - 4, text_anchor="end"))
    spoken = f"mean time of a cycle over the last {duration(span)}, at most {milliseconds(max(seen))}"
    return tag("svg", *shapes, viewBox=f"0 0 {_WIDTH} {_HEIGHT}", class_="chart", role="img", aria_label=spoken)
