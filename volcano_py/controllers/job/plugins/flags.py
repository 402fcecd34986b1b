"""Arguments of job plugins, written like command-line flags: `--f=v`, `-f=v`, `--f v`, `--f` for a switch.

As in Go, reading stops at the first argument that is no flag. What is wrong is reported in an Event and otherwise
ignored: a job is not rejected for it. Values are never shown, and of an unknown argument only what can be the name of a
flag: a mistyped `--ssh-private-key=...` carries a key.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeVar

V = TypeVar("V", str, int, bool)

_NAME = re.compile(r"[A-Za-z][A-Za-z-]{0,39}")
"""A flag's name. Base64 text of a key that stands in its place is longer, or has digits."""
_TRUE = frozenset(("1", "t", "T", "true", "TRUE", "True"))
_FALSE = frozenset(("0", "f", "F", "false", "FALSE", "False"))


class Flags:
    """The arguments of one plugin, read once; each flag is asked for by name and default."""

    def __init__(self, arguments: Sequence[str], defaults: dict[str, str | int | bool]) -> None:
        self._values = dict(defaults)
        self.problem = ""
        """What is wrong with the arguments, with the flags that exist; empty if nothing is."""
        if problem := self._read(arguments, defaults):
            self.problem = f"{problem}; this argument and those after it have no effect; the flags are " + ", ".join(
                f"--{name}" for name in defaults
            )

    def _read(self, arguments: Sequence[str], defaults: dict[str, str | int | bool]) -> str:
        """Read until something is wrong, and return what that is."""
        position = 0
        while position < len(arguments):
            text = arguments[position]
            position += 1
            if not text.startswith("-") or text in ("-", "--"):
                return ""
            name, equals, value = text.removeprefix("-").removeprefix("-").partition("=")
            if name not in defaults:
                shown = f"--{name}" if _NAME.fullmatch(name) else "that is no flag name"
                return f"unknown argument {shown}"
            default = defaults[name]
            if not equals:
                if isinstance(default, bool):
                    value = "true"
                elif position < len(arguments):
                    value = arguments[position]
                    position += 1
                else:
                    return f"argument --{name} needs a value"
            try:
                self._values[name] = _convert(value, default)
            except ValueError:
                kind = "true or false" if isinstance(default, bool) else "a number"
                return f"the value of argument --{name} is not {kind}"
        return ""

    def text(self, name: str) -> str:
        return str(self._values[name])

    def number(self, name: str) -> int:
        return int(self._values[name])

    def switch(self, name: str) -> bool:
        return bool(self._values[name])


def _convert(value: str, default: str | int | bool) -> str | int | bool:
    if isinstance(default, bool):
        if value in _TRUE:
            return True
        if value in _FALSE:
            return False
        raise ValueError(value)
    return int(value, 0) if isinstance(default, int) else value
