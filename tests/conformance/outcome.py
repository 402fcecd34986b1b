"""What comparing one case can come to."""

from __future__ import annotations

from typing import NamedTuple


class Outcome(NamedTuple):
    """`kind`: pass, fail, not-built (`why` names the missing part), unbuildable (no data to run it), deviation (`why` is its id)."""

    area: str
    name: str
    kind: str
    why: str = ""


PASS = "pass"
FAIL = "fail"
NOT_BUILT = "not built yet"
UNBUILDABLE = "no data"
DEVIATION = "deviation"
