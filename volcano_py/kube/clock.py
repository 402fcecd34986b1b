"""The clock for Leases and heartbeats: seconds, including the time while the machine is suspended.

CLOCK_MONOTONIC stops during suspend, so that a leader would treat an expired Lease as valid after a resume.
client-go has the same problem and relies on the server; this project checks before each write.
"""

from __future__ import annotations

import time

_BOOTTIME: int | None = getattr(time, "CLOCK_BOOTTIME", None)


def boottime() -> float:
    """Seconds since an arbitrary start, including suspend if the platform has CLOCK_BOOTTIME (Linux)."""
    return time.monotonic() if _BOOTTIME is None else time.clock_gettime(_BOOTTIME)
