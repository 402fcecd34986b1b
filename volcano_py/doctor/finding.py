"""A finding of the doctor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["error", "warning", "note"]
ORDER: tuple[Level, ...] = ("error", "warning", "note")


@dataclass(frozen=True)
class Finding:
    """A problem. `check`: which check found it; `what`: object and value found; `remedy`: what to do.

    An error prevents that jobs run or are accepted, a warning will, or does so for some; a note is about what could not
    be checked or is optional.
    """

    level: Level
    check: str
    what: str
    remedy: str
