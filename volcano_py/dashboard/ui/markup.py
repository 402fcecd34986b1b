"""HTML as values that are escaped by construction: text is escaped where it becomes part of an element."""

from __future__ import annotations

from html import escape
from urllib.parse import quote

_VOID = frozenset({"br", "img", "input"})


class Markup(str):
    """Text that is HTML already; everything else is escaped."""

    __slots__ = ()


Child = str | Markup | None


def tag(name: str, *children: Child, **attributes: object) -> Markup:
    """An element. `class_` is the attribute class, `aria_label` is aria-label; None and False leave one out."""
    opening = name
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        label = key.rstrip("_").replace("_", "-")
        opening += f" {label}" if value is True else f' {label}="{escape(str(value))}"'
    if name in _VOID:
        return Markup(f"<{opening}>")
    return Markup(f"<{opening}>{joined(*children)}</{name}>")


def joined(*children: Child) -> Markup:
    """Several elements and texts one after the other."""
    return Markup("".join(c if isinstance(c, Markup) else escape(c) for c in children if c))


def link(text: Child, *path: str, class_: str | None = None, **query: str) -> Markup:
    """A link within the dashboard; each part of the path is quoted."""
    where = "/" + "/".join(quote(part, safe="") for part in path)
    chosen = "&".join(f"{key}={quote(value, safe='')}" for key, value in query.items() if value)
    return tag("a", text, href=f"{where}?{chosen}" if chosen else where, class_=class_)


def table(caption: str, header: list[str], rows: list[list[Child]], numeric: frozenset[int] = frozenset()) -> Markup:
    """A table. `caption` is for screen readers; columns of numbers are aligned to the right; on a phone each cell
    shows the name of its column.
    """
    head = [tag("th", name, scope="col", class_="num" if i in numeric else None) for i, name in enumerate(header)]
    body = [
        tag(
            "tr",
            *(
                tag("td", cell or "", class_="num" if i in numeric else None, data_label=header[i])
                for i, cell in enumerate(row)
            ),
        )
        for row in rows
    ]
    return tag(
        "div",
        tag(
            "table",
            tag("caption", caption),
            tag("thead", tag("tr", *head)),
            tag("tbody", *body),
        ),
        class_="scroll",
    )


def empty(text: str, hint: str = "") -> Markup:
    """What a section shows that has nothing to show."""
    return tag("div", tag("p", text), tag("p", hint, class_="muted") if hint else None, class_="empty")


def badge(text: str, tone: str) -> Markup:
    """A state as a word in a colored frame. `tone`: good, wait, bad, done or plain; the sign does not need color."""
    sign = {"good": "●", "wait": "◔", "bad": "▲", "done": "✓", "plain": "○"}[tone]
    return tag("span", tag("span", sign, aria_hidden="true"), f" {text}", class_=f"badge {tone}")
