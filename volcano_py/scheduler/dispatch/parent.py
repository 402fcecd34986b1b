"""Ending the process that started this one. Volcano has a single process, which ends itself."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal

from volcano_py.kube.clock import boottime

GRACE = 5.0
"""Seconds between SIGTERM and SIGKILL."""


async def end_parent(pid: int) -> None:
    """End our parent, if `pid` still is our parent: SIGTERM, then SIGKILL."""
    for signal_, pause in ((signal.SIGTERM, GRACE), (signal.SIGKILL, 0.0)):
        # A parent has its id for as long as it lives; afterwards we have another parent.
        if not pid or os.getppid() != pid:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal_)
        deadline = boottime() + pause
        while boottime() < deadline and os.getppid() == pid:
            await asyncio.sleep(0.1)
