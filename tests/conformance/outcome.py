"""What comparing one case can come to."""

from __future__ import annotations

from typing import NamedTuple


class Outcome(NamedTuple):
    """`kind`: one of those below; `why` names the missing part, the difference, or the deviation's id."""

    area: str
    name: str
    kind: str
    why: str = ""


PASS = "pass"
FAIL = "fail"
NOT_BUILT = "not built yet"
NO_COUNTERPART = "no counterpart"
"""The function has no rule of its own, or belongs to a program that is not part of the project."""
OWN_TEST = "own test"
"""The call cannot be made with the data; a test of our own covers its rule."""
UNBUILDABLE = "no data"
DEVIATION = "deviation"
