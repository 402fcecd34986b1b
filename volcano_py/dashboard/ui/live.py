"""Parts of a page that are drawn again when what they show has changed."""

from __future__ import annotations

from collections.abc import Callable

from nicegui.element import Element

from volcano_py.dashboard.models import Models
from volcano_py.dashboard.ui.markup import Markup

REDRAW = 15.0
"""Seconds after which ages are drawn again though nothing has changed."""


class Html(Element, component="live.js"):  # type: ignore[call-arg]
    """Markup in the page. It is escaped already (`ui.markup`); the same markup is not sent twice."""

    def __init__(self, markup: Markup) -> None:
        super().__init__()
        self._props["html"] = markup

    def show(self, markup: Markup) -> None:
        """Show other markup."""
        if self._props["html"] != markup:
            self._props["html"] = markup
            self.update()


class Section:
    """A part of a page that shows models. `draw` makes its markup."""

    def __init__(self, models: Models, draw: Callable[[], Markup], now: Callable[[], float]) -> None:
        self._models = models
        self._draw = draw
        self._now = now
        markup, self._revision = models.drawn(draw)
        self._drawn = now()
        self._html = Html(markup)

    def tick(self) -> None:
        """Draw it again if something has changed, or if it is some seconds old."""
        if self._revision != self._models.revision or self._now() - self._drawn >= REDRAW:
            self.draw()

    def draw(self) -> None:
        """Draw it again."""
        markup, self._revision = self._models.drawn(self._draw)
        self._drawn = self._now()
        self._html.show(markup)
