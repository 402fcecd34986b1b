"""The components in addition to the API server: child processes that use the kubeconfig."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

STOP_SECONDS = 5.0


@dataclass(slots=True)
class Components:
    """The running children, by name."""

    command: Callable[[str], Sequence[str]]
    """Returns the module of a component, and its arguments; raises ValueError for an unknown name."""
    logs: Path | None = None
    """The folder for <name>.log; None: children write to this process's stderr."""
    processes: dict[str, asyncio.subprocess.Process] = field(default_factory=dict)

    async def start(self, names: Sequence[str]) -> None:
        """Start the named components. Raises ValueError for an unknown name."""
        for name in names:
            command = [sys.executable, "-m", "volcano_py.sandbox.lifeline", *self.command(name)]
            output = None
            if self.logs is not None:
                self.logs.mkdir(parents=True, exist_ok=True)
                output = (self.logs / f"{name}.log").open("wb")
            self.processes[name] = await asyncio.create_subprocess_exec(
                *command, stdin=asyncio.subprocess.PIPE, stdout=output, stderr=output
            )
            if output is not None:
                output.close()

    def ended(self) -> dict[str, int]:
        """Exit codes of children that are no longer running."""
        return {name: process.returncode for name, process in self.processes.items() if process.returncode is not None}

    async def stop(self) -> None:
        """Terminate the children, and kill those that still run after `STOP_SECONDS`."""
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
