"""Draws the list of evictions."""

from __future__ import annotations

from volcano_py.dashboard.evictions import Evictions
from volcano_py.dashboard.ui.markup import Child, Markup, empty, joined, link, table, tag
from volcano_py.dashboard.ui.times import stamp


def draw_evictions(page: Evictions, now: float) -> Markup:
    """The newest evictions, each with the job that it was for."""
    if not page.rows:
        return empty("No pod was evicted in the last hour.", "The API server keeps Events for an hour.")
    rows: list[list[Child]] = [
        [
            stamp(row.time, now),
            joined(row.pod, tag("span", row.namespace, class_="under")),
            row.action,
            _for(row.evictor),
        ]
        for row in page.rows
    ]
    shown = table("Evictions", ["When", "Pod", "Because of", "For the job"], rows)
    hidden = page.total - len(page.rows)
    return joined(shown, tag("p", f"{hidden} older evictions are not listed.", class_="muted") if hidden else None)


def _for(evictor: str) -> Child:
    if not evictor:
        return tag("span", "not named by this scheduler", class_="muted")
    namespace, _, name = evictor.partition("/")
    return joined(link(name, "jobs", namespace, name, class_="name"), tag("span", namespace, class_="under"))
