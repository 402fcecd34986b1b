"""Draws the page of shares: what queues and owners have used, beside their share."""

from __future__ import annotations

from volcano_py.cli.fairshare_order import Line
from volcano_py.dashboard.shares import SharePage
from volcano_py.dashboard.ui.markup import Child, Markup, empty, joined, link, table, tag
from volcano_py.dashboard.ui.times import duration, stamp

_HOUR = 3600.0
_LEGEND = (
    ("held", "used, of what its siblings have used"),
    ("over", "used, more than its share"),
    ("deserved", "its share, by weight"),
)


def draw_shares(page: SharePage | None, problem: str, now: float) -> Markup:
    """The page; `problem`: why there is no newer usage."""
    note = tag("p", problem, class_="note", role="status") if problem else None
    if page is None:
        return joined(note, empty("No usage is known.", "The plugin fairshare counts it, and stores it once a minute."))
    legend = [tag("li", tag("i", class_=f"key {name}", aria_hidden="true"), text) for name, text in _LEGEND]
    rows: list[list[Child]] = [
        [
            _name(line),
            str(line.order),
            f"{line.weight:g}",
            _bar(line),
            f"{line.used / _HOUR:.2f} h",
            f"{line.held:.1%}",
        ]
        for line in page.rows
    ]
    header = ["Queue or owner", "Order", "Weight", "Used against share", "Usage", "Held now"]
    return joined(
        note,
        tag("ul", *legend, class_="legend"),
        table("Usage and shares", header, rows, frozenset({1, 2, 4, 5})),
        tag(
            "p",
            "Usage in hours of the whole cluster, read ",
            stamp(page.at, now),
            f"; it halves every {duration(page.half_life)}. The order is among siblings; 1 comes first.",
            class_="muted",
        ),
    )


def _name(line: Line) -> Markup:
    name: Child = line.owner or link(line.queue, "queues", line.queue)
    return tag("span", name, class_="who" if line.owner else "who queue-name", style=f"--depth:{line.depth}")


def _bar(line: Line) -> Markup:
    over = line.of_siblings > line.share
    whose = f"owner {line.owner} of {line.queue}" if line.owner else f"queue {line.queue}"
    spoken = f"{whose}: used {line.of_siblings:.0%}, share {line.share:.0%}"
    return joined(
        tag(
            "span",
            tag("i", class_="held over" if over else "held", style=f"width:{line.of_siblings:.2%}"),
            tag("i", class_="deserved", style=f"left:{line.share:.2%}"),
            class_="bar",
            role="img",
            aria_label=spoken,
        ),
        tag("span", f"{line.of_siblings:.0%} of {line.share:.0%}", class_="under"),
    )
