"""What every page has: navigation, theme, the state of the data, and the clock that keeps it live."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from nicegui import ui

from volcano_py.dashboard.ui.draw_status import draw_banner, draw_state
from volcano_py.dashboard.ui.live import Html, Section
from volcano_py.dashboard.ui.markup import Markup, joined, tag
from volcano_py.dashboard.ui.site import Site

TICK = 1.0
"""Seconds between two looks at what has changed."""
NAVIGATION = (
    ("Queues", "/"),
    ("Jobs", "/jobs"),
    ("Nodes", "/nodes"),
    ("Reservations", "/reservations"),
    ("Shares", "/shares"),
    ("Evictions", "/evictions"),
    ("Cycles", "/cycles"),
)
_THEMES = {"": "Auto", "light": "Light", "dark": "Dark"}
_COOKIE = "volcano-dashboard-theme"


class Shell:
    """A page under construction. `every` and `section` add what is kept live."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self._each: list[Callable[[], None]] = []

    def section(self, draw: Callable[[], Markup]) -> Section:
        """A part that shows models."""
        made = Section(self.site.models, draw, self.site.now)
        self.every(made.tick)
        return made

    def every(self, tick: Callable[[], None]) -> None:
        """Call a function at every tick, while the viewer is connected."""
        self._each.append(tick)

    def tick(self) -> None:
        """Bring the page up to date."""
        for one in self._each:
            one()


@contextmanager
def page(site: Site, title: str, active: str) -> Iterator[Shell]:
    """The frame of a page; what is made in the context is its content."""
    client = ui.context.client
    site.watches.join()
    client.on_delete(lambda: site.watches.leave())
    shell = Shell(site)
    ui.page_title(f"{title} – Volcano")
    theme = client.request.cookies.get(_COOKIE, "") if client.request is not None else ""
    ui.colors(primary="#0072b2")
    dark = ui.dark_mode({"light": False, "dark": True}.get(theme))
    with ui.element("div").classes("shell"):
        with ui.element("header"):
            Html(_navigation(active))
            with ui.element("div").classes("right"):
                state = Html(draw_state(site.watches.health()))
                _theme_switch(dark, theme)
        banner = Html(draw_banner(site.watches.health()))
        with ui.element("div").classes("content").props('id="content" tabindex="-1"'):
            Html(tag("h1", title))
            yield shell
        Html(tag("footer", f"Cluster {site.cluster}"))

    def show_health() -> None:
        health = site.watches.health()
        state.show(draw_state(health))
        banner.show(draw_banner(health))

    shell.every(show_health)
    ui.timer(TICK, shell.tick)


def _navigation(active: str) -> Markup:
    links = [tag("a", name, href=where, aria_current="page" if where == active else None) for name, where in NAVIGATION]
    return joined(
        tag("a", "Skip to the content", href="#content", class_="skip"),
        tag("span", "Volcano", class_="brand"),
        tag("nav", *links, aria_label="Pages"),
    )


def _theme_switch(dark: ui.dark_mode, theme: str) -> None:
    names = list(_THEMES)
    chosen = theme if theme in _THEMES else ""

    def change() -> None:
        nonlocal chosen
        chosen = names[(names.index(chosen) + 1) % len(names)]
        dark.value = {"light": False, "dark": True}.get(chosen)
        show()
        ui.run_javascript(f"document.cookie = '{_COOKIE}={chosen}; path=/; max-age=31536000; SameSite=Strict'")

    def show() -> None:
        button.set_text(_THEMES[chosen])
        button.props(f'aria-label="Color theme: {_THEMES[chosen]}"')

    button = ui.button(on_click=change).props("flat dense no-caps")
    show()
