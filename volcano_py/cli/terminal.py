"""What reaches the terminal: control characters in texts of the cluster are escaped. kubectl: the same in `describe`.

A condition, an Event or a name of a file can contain ESC, BEL or CR, written by any user of the cluster; a terminal
would obey them. Each program writes through `Escaping`, which shows a control character as \\u001b. This form is also
valid in JSON. Colours and cursor movements of the programs themselves pass, because `passing` marks them with
characters that no decoded text contains (lone surrogates).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console

_CONTROL = [*(c for c in range(0x20) if chr(c) not in "\n\t"), *range(0x7F, 0xA0)]
_BIDI = [0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
"""Characters that change the order in which a terminal shows text."""
_MARK = 0xDC00
_ESCAPED = {c: f"\\u{c:04x}" for c in _CONTROL}
_ON_TERMINAL = {**_ESCAPED, **{c: f"\\u{c:04x}" for c in _BIDI}}
_PASSED = {c: chr(_MARK + c) for c in _CONTROL}
_RESTORED = {_MARK + c: chr(c) for c in _CONTROL}

_SEQUENCE = re.compile("\udc1b\\[[0-9;?]*[A-Za-z]")
"""A colour or a movement of the cursor, as the programs mark it; a file gets none."""


def passing(text: str) -> str:
    """A text of the program itself, or one that is printed as it is, whose control characters reach the terminal."""
    return text.translate(_PASSED) if isinstance(sys.stdout, Escaping) else text


def style(text: str, **styles: Any) -> str:
    """`click.style` for a text that may contain control characters: only those of the style reach the terminal."""
    before, _, after = click.style("\0", **styles).partition("\0")
    return passing(before) + text + passing(after)


class Escaping:
    """A text stream that escapes control characters. Everything else is the stream's own."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._terminal = stream.isatty()
        self._table = (_ON_TERMINAL if self._terminal else _ESCAPED) | _RESTORED
        self.encoding = getattr(stream, "encoding", None) or "utf-8"

    def write(self, text: str) -> int:
        """Write a text; the number of its characters."""
        shown = text if self._terminal else _SEQUENCE.sub("", text)
        self._stream.write(shown.translate(self._table))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def escaping() -> Iterator[None]:
    """Escape what is written to standard output and standard error meanwhile."""
    out, err = sys.stdout, sys.stderr
    sys.stdout = out if isinstance(out, Escaping) else Escaping(out)
    sys.stderr = err if isinstance(err, Escaping) else Escaping(err)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = out, err


def console(**options: Any) -> Console:
    """A console of rich that escapes control characters of what it prints, and keeps its own."""
    from rich.console import Console
    from rich.segment import Segment

    class _Console(Console):
        def _render_buffer(self, buffer: Iterable[Segment]) -> str:
            shown = [one if one.control else Segment(one.text.translate(_ON_TERMINAL), one.style) for one in buffer]
            return passing(super()._render_buffer(shown))

    return _Console(**options)
