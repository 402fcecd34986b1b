"""SIGTERM ends a program as Ctrl-C does: its work is cancelled, and it releases its Lease and closes its connections.

Without a handler the signal ends a process at once, and the first process of a container, which has no default action
for signals, not at all: kubelet then kills it after the grace period. Corresponds to the context that Kubernetes'
components make of signals.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Coroutine
from typing import Any

log = logging.getLogger(__name__)


async def until_terminated(work: Coroutine[Any, Any, None]) -> None:
    """Run until the work ends, which raises its error, or until SIGTERM has cancelled it."""
    task = asyncio.create_task(work, name="program")
    loop = asyncio.get_running_loop()
    terminated = False

    def terminate() -> None:
        nonlocal terminated
        if not terminated:
            terminated = True
            log.info("SIGTERM: stopping")
            task.cancel()

    loop.add_signal_handler(signal.SIGTERM, terminate)
    try:
        with contextlib.suppress(asyncio.CancelledError):
            await task
        if not terminated and task.cancelled():
            raise asyncio.CancelledError
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
