"""Arguments of job plugins, in the form of command-line flags: `--f=v`, `-f=v`, `--f v`, `--f` for a switch.

As in Go, parsing stops at the first argument that is not a flag. Errors are reported in an Event and otherwise
ignored: they do not fail the Job. Values are never printed, and of an unknown argument only a valid flag name is
printed: a mistyped `--ssh-private-key=...` contains a key.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeVar

V = TypeVar("V", str, int, bool)

_NAME = re.compile(r"[A-Za-z][A-Za-z-]{0,39}")
"""A flag's name. A base64 key in its place is longer, or contains digits."""
_TRUE = frozenset(("1", "t", "T", "true", "TRUE", "True"))
_FALSE = frozenset(("0", "f", "F", "false", "FALSE", "False"))


class Flags:
    """The arguments of one plugin, parsed once; each flag is read by name and has a default."""

    def __init__(self, arguments: Sequence[str], defaults: dict[str, str | int | bool]) -> None:
        self._values = dict(defaults)
        self.problem = ""
        """The error in the arguments, with the valid flags; empty if there is none."""
        if problem := self._read(arguments, defaults):
            self.problem = f"{problem}; this argument and those after it have no effect; valid flags are " + ", ".join(
                f"--{name}" for name in defaults
            )

    def _read(self, arguments: Sequence[str], defaults: dict[str, str | int | bool]) -> str:
        """Parse up to the first error, and return it."""
        position = 0
        while position < len(arguments):
            text = arguments[position]
            position += 1
            if not text.startswith("-") or text in ("-", "--"):
                return ""
            name, equals, value = text.removeprefix("-").removeprefix("-").partition("=")
            if name not in defaults:
                shown = f"--{name}" if _NAME.fullmatch(name) else "(not a valid flag name)"
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
                return f"the value of argument --{name} must be {kind}"
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
