"""Lines that fit the terminal. Output that is not a terminal is not wrapped: scripts read one message per line."""

from __future__ import annotations

import os
from textwrap import wrap
from typing import IO, Any

_NARROWEST = 40
"""Text is not wrapped to fewer columns than this."""


def counted(number: int, noun: str) -> str:
    """A number with its noun: 1 job, 2 jobs, 3 PriorityClasses."""
    plural = noun[:-1] + "ies" if noun.endswith("logy") else f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"


def columns_of(stream: IO[Any]) -> int | None:
    """The width of the terminal behind a stream; None if it is unknown, or the stream is a pipe or a file. `COLUMNS`
    overrides the width."""
    if not stream.isatty():
        return None
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given):
        return int(given)
    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except (OSError, ValueError):
        return None


def wrapped(text: str, stream: IO[Any], indent: int = 0, start: int = 0) -> str:
    """A text for a stream: on a terminal it is broken between words. `indent`: spaces before every line but the first;
    `start`: columns of the first line that are in use already."""
    columns = columns_of(stream)
    if columns is None or (start + len(text) <= columns and "\n" not in text):
        return text
    width = max(columns, _NARROWEST)
    lines = []
    for number, line in enumerate(text.splitlines()):
        first = " " * start if number == 0 else " " * indent
        lines += wrap(
            line,
            width,
            initial_indent=first,
            subsequent_indent=" " * indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
    return "\n".join(lines)[start:]
