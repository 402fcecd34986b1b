"""The clock of Leases and heartbeats: seconds that also pass while the machine is suspended.

CLOCK_MONOTONIC stops during suspend, so a leader that wakes up would believe that its Lease is still valid.
client-go has the same problem and leaves it to the server; this project checks before each write.
"""

from __future__ import annotations

import time

_BOOTTIME: int | None = getattr(time, "CLOCK_BOOTTIME", None)


def boottime() -> float:
    """Seconds since an arbitrary start, suspend included where the platform has CLOCK_BOOTTIME (Linux)."""
    return time.monotonic() if _BOOTTIME is None else time.clock_gettime(_BOOTTIME)
