"""Draws the page of queues: a tree of rows with a bar for each resource."""

from __future__ import annotations

from volcano_py.dashboard.queues import Bar, Part, QueuePage, QueueRow
from volcano_py.dashboard.ui.markup import Child, Markup, badge, empty, joined, link, tag

_TONES = {"Open": "good", "Closed": "bad", "Closing": "wait"}
_LEGEND = (
    ("held", "held"),
    ("over", "held, more than deserved"),
    ("inqueue", "inqueue: admitted, not placed yet"),
    ("deserved", "deserved"),
    ("guarantee", "guarantee"),
    ("limit", "beyond the limit"),
)


def draw_queues(page: QueuePage) -> Markup:
    """The tree."""
    if not page.rows:
        return empty("There are no queues yet.", "The scheduler creates root and default when it starts.")
    legend = [tag("li", tag("i", class_=f"key {name}", aria_hidden="true"), text) for name, text in _LEGEND]
    return joined(
        *(tag("p", text, class_="note", role="status") for text in page.problems),
        tag("ul", *legend, class_="legend"),
        tag("div", *(_row(row) for row in page.rows), class_="tree", role="list", aria_label="Queues"),
    )


def _row(row: QueueRow) -> Markup:
    about = [badge(row.state, _TONES.get(row.state, "plain")), tag("span", f"weight {row.weight}", class_="muted")]
    if not row.reclaimable:
        about.append(tag("span", "not reclaimable", class_="muted"))
    if row.priority:
        about.append(tag("span", f"priority {row.priority}", class_="muted"))
    jobs: Child = f"{row.running} running, {row.waiting} waiting"
    return tag(
        "section",
        tag(
            "div",
            tag("h3", link(row.name, "queues", row.name), style=f"--depth:{row.depth}"),
            tag("div", *about, class_="about"),
            tag("div", link(jobs, "jobs", queue=row.name) if row.running + row.waiting else jobs, class_="about"),
            class_="who",
            style=f"--depth:{row.depth}",
        ),
        tag("div", *(_bar(bar, row.name) for bar in row.bars), class_="bars"),
        class_="queue",
        role="listitem",
    )


def _bar(bar: Bar, queue: str) -> Markup:
    held, inqueue = bar.held.share, min(bar.inqueue.share, 1.0 - bar.held.share)
    parts = [tag("i", class_="held over" if bar.over else "held", style=f"width:{held:.2%}")]
    if inqueue:
        parts.append(tag("i", class_="inqueue", style=f"left:{held:.2%};width:{inqueue:.2%}"))
    if bar.guarantee is not None and bar.guarantee.share:
        parts.append(tag("i", class_="guarantee", style=f"width:{bar.guarantee.share:.2%}"))
    if bar.limit is not None and bar.limit.share < 1:
        parts.append(tag("i", class_="limit", style=f"left:{bar.limit.share:.2%}"))
    if bar.deserved is not None:
        parts.append(tag("i", class_="deserved", style=f"left:{bar.deserved.share:.2%}"))
    facts = facts_of(bar)
    spoken = f"{queue}, {bar.resource}: " + ", ".join(f"{name} {value}" for name, value in facts)
    return tag(
        "div",
        tag("span", short(bar.resource), class_="resource", title=bar.resource),
        tag("span", *parts, class_="bar", role="img", aria_label=spoken),
        tag("span", *(tag("span", tag("b", value), f" {name}") for name, value in facts), class_="facts"),
        class_="measure",
    )


def facts_of(bar: Bar) -> list[tuple[str, str]]:
    """The numbers of a bar, by name."""
    found = [("held", bar.held.text)]
    if bar.inqueue.share:
        found.append(("inqueue", bar.inqueue.text))
    if bar.deserved is not None:
        found.append(("deserved by weight" if bar.by_weight else "deserved", bar.deserved.text))
    return found + [(name, part.text) for name, part in _bounds(bar) if part is not None]


def _bounds(bar: Bar) -> tuple[tuple[str, Part | None], ...]:
    return (("guarantee", bar.guarantee), ("limit", bar.limit))


def short(resource: str) -> str:
    """A resource's name without its domain: nvidia.com/gpu is gpu."""
    return resource.rpartition("/")[2]
