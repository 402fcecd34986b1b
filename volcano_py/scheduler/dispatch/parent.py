"""Termination of the process that started this one. Volcano has a single process, which exits itself."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal

from volcano_py.kube.clock import boottime

GRACE = 5.0
"""Seconds between SIGTERM and SIGKILL."""


async def end_parent(pid: int) -> None:
    """End the parent process, if it still has the ID `pid`: SIGTERM, then SIGKILL."""
    for signal_, pause in ((signal.SIGTERM, GRACE), (signal.SIGKILL, 0.0)):
        # While the parent runs, its ID does not change; afterwards this process has another parent.
        if not pid or os.getppid() != pid:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal_)
        deadline = boottime() + pause
        while boottime() < deadline and os.getppid() == pid:
            await asyncio.sleep(0.1)
