"""Draws the state of the data of a page: how old it is, what may not be read, what does not decode."""

from __future__ import annotations

from volcano_py.dashboard.ui.markup import Markup, badge, joined, tag
from volcano_py.dashboard.ui.times import duration
from volcano_py.dashboard.watches import Health


def draw_state(health: Health) -> Markup:
    """One word: whether the page is live."""
    if health.stale is not None:
        return badge(f"{duration(health.stale)} old", "bad")
    return badge("loading", "wait") if health.loading else badge("live", "good")


def draw_banner(health: Health) -> Markup:
    """What is wrong; empty when nothing is."""
    parts = []
    if health.stale is not None:
        text = f"The API server does not answer: {health.error or 'the connection is lost'}. "
        text += f"The data is {duration(health.stale)} old; the dashboard retries."
        parts.append(tag("div", text, class_="banner bad", role="alert"))
    if health.missing:
        items = [
            tag("li", m.what, tag("span", " ", tag("code", m.remedy)) if m.remedy else None) for m in health.missing
        ]
        count = f"{len(health.missing)} " + ("kind is" if len(health.missing) == 1 else "kinds are")
        parts.append(
            tag(
                "details",
                tag("summary", f"{count} not or only partly shown"),
                tag("ul", *items),
                class_="banner",
            )
        )
    if health.quarantined:
        items = [tag("li", text) for text in health.quarantined[:20]]
        broken = len(health.quarantined)
        what = "1 object does" if broken == 1 else f"{broken} objects do"
        parts.append(
            tag("details", tag("summary", f"{what} not decode and cannot be shown"), tag("ul", *items), class_="banner")
        )
    return joined(*parts)
