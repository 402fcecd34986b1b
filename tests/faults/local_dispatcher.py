"""Dispatchers as tasks of this process instead of processes: their tasks can be killed, and starting one is cheap."""

from __future__ import annotations

import asyncio
import os
import socket
from typing import Any

from volcano_py.scheduler.dispatch.process import Process


class LocalDispatcher:
    """Stands in for `subprocess.Popen` of a dispatcher."""

    def __init__(self, command: list[str], *, pass_fds: tuple[int, ...], **_: Any) -> None:
        sock = socket.socket(fileno=os.dup(pass_fds[0]))
        self.pid = os.getpid()
        process = Process(sock)
        self.task = asyncio.create_task(process.run(), name="dispatcher process")
        # As the kernel does at the end of a process.
        self.task.add_done_callback(lambda _: process._pipe.close())

    @property
    def returncode(self) -> int | None:
        """As a process that ended with an exception has it."""
        if not self.task.done():
            return None
        return -9 if self.task.cancelled() else 1 if self.task.exception() else self.task.result()

    def poll(self) -> int | None:
        return self.returncode

    def kill(self) -> None:
        self.task.cancel()

    def send_signal(self, signal: int) -> None:
        self.task.cancel()

    def wait(self) -> int | None:
        return self.returncode
