"""HTML of results for notebooks: tables and bars that take the colors of the page, light or dark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

_CELL = "text-align:left;padding:2px 12px 2px 0"
_COLORS = {
    "Running": "#2e9e5b",
    "Completed": "#2f7ed8",
    "Failed": "#d64541",
    "Terminated": "#d64541",
    "Aborted": "#c9891a",
    "Pending": "#c9891a",
}


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; the cells are HTML already."""
    top = "".join(f"<th style='{_CELL}'>{escape(text)}</th>" for text in header)
    body = "".join("<tr>" + "".join(f"<td style='{_CELL}'>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def phase(text: str) -> str:
    """A phase in its color."""
    return f"<b style='color:{_COLORS.get(text, 'inherit')}'>{escape(text)}</b>"


def bar(done: int, total: int) -> str:
    """A bar with its numbers."""
    part = 0 if total <= 0 else min(100, round(100 * done / total))
    return (
        "<span style='display:inline-block;width:8em;height:.7em;border:1px solid currentColor;opacity:.8'>"
        f"<span style='display:block;width:{part}%;height:100%;background:#2e9e5b'></span></span> {done}/{total}"
    )


def paragraph(text: str) -> str:
    """A paragraph of text."""
    return f"<p style='margin:.3em 0'>{escape(text)}</p>"


def code(text: str) -> str:
    """A name in the text."""
    return f"<code>{escape(text)}</code>"


def listed(items: Iterable[str]) -> str:
    """A list; the items are HTML already."""
    return "<ul>" + "".join(f"<li>{item}</li>" for item in items) + "</ul>"
