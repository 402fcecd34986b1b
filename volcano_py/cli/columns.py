"""Tables as Volcano's tools print them: columns of fixed width, colour only on a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import click

from volcano_py.api.meta import parse_time
from volcano_py.cli.terminal import style
from volcano_py.cli.wrapping import columns_of, wrapped

NAMESPACE = "Namespace"
_GAP = 2
"""Spaces between columns on a terminal that is too narrow for the usual ones."""

_COLOURS = {
    "Running": "green",
    "Completed": "cyan",
    "Open": "green",
    "Pending": "yellow",
    "Inqueue": "yellow",
    "Failed": "red",
    "Terminated": "red",
    "Aborted": "red",
    "Closed": "red",
}


class Table(NamedTuple):
    """A table as data; `rows` are in the order of their objects. `optional`: columns that a narrow terminal leaves
    out, the least important first."""

    header: Sequence[str]
    rows: Sequence[Sequence[object]]
    widths: Sequence[int]
    optional: Sequence[str] = ()

    def show(self) -> None:
        """Print it. On a terminal, columns move together and optional columns are left out until the rows fit."""
        columns = columns_of(sys.stdout)
        whole = self if columns is None else self.narrowed(columns)
        table, left_out = whole, list[str]()
        for name in self.optional:
            if columns is None or table.width <= columns:
                break
            if name != NAMESPACE or len({row[table.header.index(name)] for row in table.rows}) == 1:
                table = table._without(name)
                left_out += [name] if name else []
        if columns is not None and table.width > columns:
            table, left_out = whole, []  # it wraps anyway
        table.print_lines()
        if left_out:
            note = f"Columns left out to fit the terminal: {', '.join(left_out)}. In a pipe or a file none is left out."
            click.echo(style(wrapped(note, sys.stderr), dim=True), err=True)

    def print_lines(self) -> None:
        """Print all columns."""
        click.echo(line(self.header, self.widths))
        for row in self.rows:
            click.echo(line(row, self.widths))

    @property
    def width(self) -> int:
        """Characters of the longest row."""
        return sum(self.widths[:-1]) + self._content()[-1]

    def narrowed(self, columns: int) -> Table:
        """The same columns for a terminal: aligned, and closer together if the rows do not fit otherwise."""
        content = self._content()
        aligned = self._replace(widths=[max(width, n + 1) for width, n in zip(self.widths, content, strict=True)])
        return aligned if aligned.width <= columns else self._replace(widths=[n + _GAP for n in content])

    def _content(self) -> list[int]:
        return [widest(name, [str(row[i]) for row in self.rows], 0) for i, name in enumerate(self.header)]

    def _without(self, name: str) -> Table:
        kept = [i for i, column in enumerate(self.header) if column != name]
        return self._replace(
            header=[self.header[i] for i in kept],
            rows=[[row[i] for i in kept] for row in self.rows],
            widths=[self.widths[i] for i in kept],
        )


def fitted(
    header: Sequence[str], rows: Sequence[Sequence[object]], extra: int = 4, optional: Sequence[str] = ()
) -> Table:
    """A table whose columns are `extra` characters wider than their longest entry."""
    widths = [widest(name, [str(row[i]) for row in rows], extra) for i, name in enumerate(header)]
    return Table(header, rows, widths, optional)


def line(values: Sequence[object], widths: Sequence[int]) -> str:
    """One row; an entry that is wider than its column shifts the rest to the right, as in Volcano. There is always a
    space between two entries, and on a terminal none at the end, which would wrap."""
    last = len(widths) - 1
    cells = [
        _cell(text, width if i == last else max(width, len(text) + 1))
        for i, (text, width) in enumerate(zip(map(str, values), widths, strict=True))
    ]
    return "".join(cells).rstrip() if sys.stdout.isatty() else "".join(cells)


def _cell(text: str, width: int) -> str:
    colour = _COLOURS.get(text)
    shown = style(text, fg=colour) if colour and sys.stdout.isatty() else text
    return shown + " " * (width - len(text))


def widest(header: str, values: Sequence[str], extra: int) -> int:
    """The width of a column that fits its longest entry."""
    return max([len(header), *map(len, values)]) + extra


def age(obj: Mapping[str, Any]) -> str:
    """The age of an object, as kubectl prints it."""
    return since((obj.get("metadata") or {}).get("creationTimestamp"))


def since(stamp: str | None) -> str:
    """The time since an RFC 3339 stamp."""
    return human_duration(time.time() - parse_time(stamp)) if stamp else "<unknown>"


def amounts(resources: Mapping[str, Any] | None) -> str:
    """A resource list as one word: cpu=4,memory=8Gi."""
    return ",".join(f"{name}={amount}" for name, amount in sorted((resources or {}).items())) or "<none>"


def human_duration(seconds: float) -> str:
    """An age as kubectl prints it: 62s, 5m30s, 3h5m, 2d, 1y20d."""
    if seconds < -1:
        return "<invalid>"
    if seconds < 0:
        return "0s"
    s = int(seconds)
    if s < 120:
        return f"{s}s"
    m = s // 60
    if m < 10:
        return f"{m}m" if s % 60 == 0 else f"{m}m{s % 60}s"
    if m < 180:
        return f"{m}m"
    h = m // 60
    if h < 8:
        return f"{h}h" if m % 60 == 0 else f"{h}h{m % 60}m"
    if h < 48:
        return f"{h}h"
    d = h // 24
    if d < 8:
        return f"{d}d" if h % 24 == 0 else f"{d}d{h % 24}h"
    if d < 730:
        return f"{d}d"
    y, rest = divmod(d, 365)
    if y < 8:
        return f"{y}y" if rest == 0 else f"{y}y{rest}d"
    return f"{y}y"
