"""The sandbox's side of the supervisor: start a run, signal it, get its result."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

LOG = logging.getLogger(__name__)

PROGRAM = "volcano_py.sandbox.kubelet.processes.supervisor"
LINE_LIMIT = 1 << 20
RESTART_SECONDS = 0.2  # before a supervisor that ended is replaced


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a run; failed: it could not start, and message has the reason."""

    code: int
    message: str = ""
    failed: bool = False


Over = Callable[[Ended], None]


class Connection:
    """One supervisor; when it ends its runs have ended, and another one is started."""

    def __init__(self) -> None:
        self.pids: dict[str, int] = {}
        self._over: dict[str, Over] = {}
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._waiting: list[dict[str, Any]] = []  # commands for the next supervisor
        self._closing = False

    async def start(self) -> None:
        """Start the supervisor in its own session: Ctrl-C reaches the sandbox, which stops processes in order."""
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            PROGRAM,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,
            limit=LINE_LIMIT,
        )
        self._reader = asyncio.create_task(self._read(self._process))
        waiting, self._waiting = self._waiting, []
        for command in waiting:
            self._send(command)

    def run(self, id_: str, over: Over, **what: Any) -> None:
        """Start a process; `over` is called once, when it has ended or could not start."""
        self._over[id_] = over
        self._send({"op": "run", "id": id_, **what})

    def signal(self, id_: str, number: int) -> None:
        """Signal a run's processes, if it still runs."""
        if id_ in self._over:
            self._send({"op": "signal", "id": id_, "signal": number})

    def runs(self, id_: str) -> bool:
        return id_ in self._over

    async def close(self, seconds: float) -> None:
        """Terminate all runs, kill those that still run after `seconds`, and end the supervisor."""
        self._closing = True
        if self._process is None:
            return
        for id_ in list(self._over):
            self.signal(id_, signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._over:
                    await asyncio.sleep(0.02)
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), 10)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        if self._reader is not None:
            await self._reader

    def _send(self, command: dict[str, Any]) -> None:
        if self._process is None or self._process.stdin is None:
            self._waiting.append(command)
        else:
            self._process.stdin.write(json.dumps(command).encode() + b"\n")

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        while line := await process.stdout.readline():
            report = json.loads(line)
            id_ = report["id"]
            if report["event"] == "started":
                self.pids[id_] = report["pid"]
                continue
            failed = report["event"] == "failed"
            self._finish(id_, Ended(128 if failed else report["code"], report.get("message", ""), failed))
        if self._closing:
            return
        LOG.error("the supervisor of the pods' processes and the processes have ended; a new one starts")
        self._process = None
        for id_, pid in list(self.pids.items()):
            # the first process of each run ended with its parent; the others of its group did not
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
            self._finish(id_, Ended(137, "the process was lost with its supervisor"))
        for id_ in list(self._over):
            self._finish(id_, Ended(128, "the supervisor ended before the process was started", True))
        await asyncio.sleep(RESTART_SECONDS)
        if not self._closing:
            await self.start()

    def _finish(self, id_: str, ended: Ended) -> None:
        self.pids.pop(id_, None)
        over = self._over.pop(id_, None)
        if over is not None and not self._closing:
            over(ended)
