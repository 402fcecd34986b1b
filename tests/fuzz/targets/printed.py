"""What the programs print: no control character of an object reaches the terminal."""

from __future__ import annotations

import contextlib
import io
import sys
from typing import Any

import click
import orjson

from tests.fuzz.target import Target, text_of
from tests.fuzz.targets.kinds import seeds_of
from volcano_py.api import kinds
from volcano_py.cli import columns, output, wrapping
from volcano_py.cli.terminal import escaping, style

_FORBIDDEN = frozenset(chr(c) for c in [*range(0x20), *range(0x7F, 0xA0)] if chr(c) not in "\n\t") | {"\u202e"}


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _printed(show: Any, *, terminal: bool) -> str:
    """What a function prints, without colours of the program itself."""
    stream = _Terminal() if terminal else io.StringIO()
    with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream), escaping():
        show()
        sys.stdout.flush()
    return stream.getvalue()


def _check(shown: str) -> None:
    left = click.unstyle(shown)
    bad = {c for c in left if c in _FORBIDDEN - {"\u202e"}}
    assert not bad, f"control characters {sorted(map(ord, bad))} in {left[:200]!r}"


def _table(data: bytes) -> None:
    text = text_of(data)
    cells = [text[i : i + 9] for i in range(0, min(len(text), 90), 9)] or [""]
    rows = [cells, cells[::-1]]
    header = [f"C{i}" for i in range(len(cells))]

    def show() -> None:
        columns.fitted(header, rows, optional=("C1",)).show()
        click.echo(wrapping.wrapped(text, sys.stdout, 4, 2))
        click.echo(style(text, fg="red"))

    for terminal in (True, False):
        _check(_printed(show, terminal=terminal))


def _object(data: bytes) -> None:
    """An object in each of kubectl's formats, and its age and labels."""
    obj = orjson.loads(data)
    if not isinstance(obj, dict) or not isinstance(obj.get("metadata"), dict):
        return

    def show() -> None:
        for form in ("json", "yaml"):
            output.print_object(kinds.JOB, obj, form)

    for terminal in (True, False):
        _check(_printed(show, terminal=terminal))


def targets() -> list[Target]:
    texts = [b"plain text", "tab\tand é \x1b[31mred\x1b[0m \u202eabc".encode(), b"a" * 200]
    return [
        Target("table", _table, (), texts, "bytes"),
        Target("printed object", _object, (orjson.JSONDecodeError,), seeds_of(kinds.JOB)),
    ]
