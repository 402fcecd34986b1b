"""The components in addition to the API server: child processes that use the kubeconfig.

One that ends is started again, after a pause that doubles from `FIRST_PAUSE` to `MAX_PAUSE`, as kubelet does with the
containers of a Deployment. One that has run for `STEADY` seconds begins with the first pause again.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

STOP_SECONDS = 5.0
FIRST_PAUSE, MAX_PAUSE = 1.0, 300.0
"""Seconds before a component that has ended is started again (kubelet: 10 to 300)."""
STEADY = 600.0


@dataclass(slots=True)
class Components:
    """The running children, by name."""

    command: Callable[[str], Sequence[str]]
    """Returns the module of a component, and its arguments; raises ValueError for an unknown name."""
    logs: Path | None = None
    """The folder for <name>.log; None: children write to this process's stderr."""
    processes: dict[str, asyncio.subprocess.Process] = field(default_factory=dict)

    on_end: Callable[[str, int, float], None] = lambda name, code, pause: None
    """Called with the name, the exit code and the pause when a component has ended."""
    _keepers: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _ended: dict[str, int] = field(default_factory=dict)

    async def start(self, names: Sequence[str]) -> None:
        """Start the named components, and keep them running. Raises ValueError for an unknown name."""
        for name in names:
            if (keeper := self._keepers.pop(name, None)) is not None:
                keeper.cancel()
            await self._start(name)
            self._keepers[name] = asyncio.create_task(self._keep(name), name=f"component {name}")

    async def _start(self, name: str, again: bool = False) -> None:
        command = [sys.executable, "-m", "volcano_py.sandbox.lifeline", *self.command(name)]
        output = None
        if self.logs is not None:
            self.logs.mkdir(parents=True, exist_ok=True)
            output = (self.logs / f"{name}.log").open("ab" if again else "wb")
        try:
            self.processes[name] = await asyncio.create_subprocess_exec(
                *command, stdin=asyncio.subprocess.PIPE, stdout=output, stderr=output
            )
        finally:
            if output is not None:
                output.close()

    async def _keep(self, name: str) -> None:
        pause = FIRST_PAUSE
        while True:
            begun = time.monotonic()
            code = await self.processes[name].wait()
            if time.monotonic() - begun > STEADY:
                pause = FIRST_PAUSE
            self._ended[name] = code
            self.on_end(name, code, pause)
            await asyncio.sleep(pause)
            pause = min(MAX_PAUSE, 2 * pause)
            await self._start(name, again=True)

    def ended(self) -> dict[str, int]:
        """The last exit code of each child that has ended, also if it was started again."""
        return dict(self._ended)

    async def stop(self) -> None:
        """Terminate the children, and kill those that still run after `STOP_SECONDS`."""
        keepers = list(self._keepers.values())
        self._keepers.clear()
        for keeper in keepers:
            keeper.cancel()
        await asyncio.gather(*keepers, return_exceptions=True)
        running = [process for process in self.processes.values() if process.returncode is None]
        for process in running:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
        for process in running:
            try:
                await asyncio.wait_for(process.wait(), STOP_SECONDS)
            except TimeoutError:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        self.processes.clear()
