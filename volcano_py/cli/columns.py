"""Tables as Volcano's tools print them: columns of fixed width, colour only on a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import click

from volcano_py.api.meta import parse_time

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
    """A table as data; `rows` are in the order of their objects."""

    header: Sequence[str]
    rows: Sequence[Sequence[object]]
    widths: Sequence[int]

    def show(self) -> None:
        """Print it."""
        click.echo(line(self.header, self.widths))
        for row in self.rows:
            click.echo(line(row, self.widths))


def fitted(header: Sequence[str], rows: Sequence[Sequence[object]], extra: int = 4) -> Table:
    """A table whose columns are `extra` characters wider than their longest entry."""
    widths = [widest(name, [str(row[i]) for row in rows], extra) for i, name in enumerate(header)]
    return Table(header, rows, widths)


def line(values: Sequence[object], widths: Sequence[int]) -> str:
    """One row; an entry that is wider than its column shifts the rest to the right, as in Volcano."""
    return "".join(_cell(str(value), width) for value, width in zip(values, widths, strict=True))


def _cell(text: str, width: int) -> str:
    padded = text.ljust(width)
    colour = _COLOURS.get(text)
    return click.style(padded, fg=colour) if colour and sys.stdout.isatty() else padded


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
