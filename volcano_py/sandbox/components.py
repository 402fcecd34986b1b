"""The components beside the API server: child processes that get the kubeconfig."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

WEBHOOK_MANAGER = "webhook-manager"
# what each component is given beside --kubeconfig; one replica needs no election
ARGUMENTS: dict[str, tuple[str, ...]] = {
    "scheduler": ("--leader-elect=false", "--scheduler-name=volcano", "--scheduler-name=default-scheduler"),
    "controller-manager": ("--leader-elect=false", "--kube-api-qps=2000", "--kube-api-burst=4000"),
    WEBHOOK_MANAGER: ("--register", "--listen-address=127.0.0.1"),
}
DEFAULT = ("scheduler", "controller-manager")
STOP_SECONDS = 5.0
SCHEDULER_CONFIGMAP = ("volcano-system", "volcano-scheduler-configmap")
"""Namespace and name of the ConfigMap with the scheduler's configuration, as in Volcano's chart."""
SCHEDULER_KEY = "volcano-scheduler.conf"
"""The key of its data, and the name of the file that comes with us."""


def shipped_configuration() -> Path:
    """The scheduler configuration that comes with us: in the wheel, else in the checkout."""
    package = Path(__file__).resolve().parent.parent
    packed = package / "data" / "conf" / SCHEDULER_KEY
    return packed if packed.is_file() else package.parent / "conf" / SCHEDULER_KEY


def scheduler_configmap() -> dict[str, Any]:
    """The ConfigMap that the scheduler reads, with the configuration that comes with us."""
    namespace, name = SCHEDULER_CONFIGMAP
    text = shipped_configuration().read_text(encoding="utf-8")
    return {"metadata": {"namespace": namespace, "name": name}, "data": {SCHEDULER_KEY: text}}


@dataclass(slots=True)
class Components:
    """The running children, by name."""

    kubeconfig: Path
    logs: Path | None = None  # folder for <name>.log; None: they write to our stderr
    arguments: Mapping[str, Sequence[str]] = field(default_factory=dict)
    processes: dict[str, asyncio.subprocess.Process] = field(default_factory=dict)

    async def start(self, names: Sequence[str]) -> None:
        """Start the named components; ValueError for a name that there is not."""
        for name in names:
            if name not in ARGUMENTS:
                raise ValueError(f"components: there is no {name!r}; known are {', '.join(ARGUMENTS)} and none")
            extra = (*ARGUMENTS[name], *self.arguments.get(name, ()))
            if name == "scheduler" and not any(a.startswith("--scheduler-conf") for a in extra):
                extra = (*extra, f"--scheduler-configmap={SCHEDULER_CONFIGMAP[0]}/{SCHEDULER_CONFIGMAP[1]}")
            if name == WEBHOOK_MANAGER and not any(a.startswith("--port") for a in extra):
                port = _free_port()
                extra = (*extra, f"--port={port}", f"--webhook-url=https://127.0.0.1:{port}")
            program = (sys.executable, "-m", "volcano_py.sandbox.lifeline")
            command = [*program, name, "--kubeconfig", str(self.kubeconfig), *extra]
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
        """Terminate our own children, and kill those that do not listen."""
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


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
