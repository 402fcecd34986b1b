"""The consistent hash ring that divides pods and nodes between several schedulers. Volcano: stathat.com/c/consistent.

Every member has 20 points, CRC-32 (IEEE) of `<i><name>`; a key belongs to the first point strictly above its
own CRC-32.
"""

from __future__ import annotations

import os
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Mapping

POINTS = 20


class Ring:
    """The member that is responsible for a key."""

    def __init__(self, members: Iterable[str]) -> None:
        points = {zlib.crc32(f"{i}{member}".encode()): member for member in members for i in range(POINTS)}
        if not points:
            raise ValueError("a hash ring needs at least one member")
        self._hashes = sorted(points)
        self._points = points

    def owner(self, key: str) -> str:
        """The member responsible for `key`."""
        at = bisect_right(self._hashes, zlib.crc32(key.encode()))
        return self._points[self._hashes[at % len(self._hashes)]]


def from_environment(environment: Mapping[str, str] = os.environ) -> tuple[Ring, str] | None:
    """The ring and this scheduler's name in it, when MULTI_SCHEDULER_ENABLE is `true`; else None.

    SCHEDULER_POD_NAME is `<base>-<index>`, as in a StatefulSet; SCHEDULER_NUM is the number of schedulers (1 if it is
    not a number).
    """
    if environment.get("MULTI_SCHEDULER_ENABLE") != "true":
        return None
    mine = environment.get("SCHEDULER_POD_NAME", "")
    base = mine.rpartition("-")[0]
    try:
        count = int(environment.get("SCHEDULER_NUM", "1"))
    except ValueError:
        count = 1
    return Ring(f"{base}-{i}" for i in range(max(1, count))), mine
