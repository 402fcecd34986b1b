"""Replicas of the scheduler and of the controller-manager, each a real process with a network and a user of its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path

from tests.ha.network import Network
from volcano_py.sandbox import kubeconfig

REPOSITORY = Path(__file__).parents[2]
SCHEDULER, CONTROLLERS = "scheduler", "controller-manager"
LEASES = {SCHEDULER: "volcano", CONTROLLERS: "vc-controller-manager"}


@dataclass(frozen=True)
class Times:
    """Of the Lease, in seconds."""

    lease: float = 4.0
    deadline: float = 3.0
    retry: float = 0.5

    def flags(self) -> list[str]:
        return [
            f"--leader-elect-lease-duration={self.lease * 1000:.0f}ms",
            f"--leader-elect-renew-deadline={self.deadline * 1000:.0f}ms",
            f"--leader-elect-retry-period={self.retry * 1000:.0f}ms",
        ]


KUBERNETES = Times(15.0, 10.0, 2.0)
"""The defaults of both programs."""


@dataclass
class Replica:
    """One replica. `source`: the checkout whose program runs."""

    name: str
    """Also the name of its user."""
    program: str
    network: Network
    token: str
    authority: bytes
    folder: Path
    times: Times
    source: Path = REPOSITORY
    process: asyncio.subprocess.Process | None = None
    starts: int = 0
    _stopped: list[int] = field(default_factory=list)

    @property
    def log(self) -> Path:
        return self.folder / f"{self.name}.log"

    def _command(self) -> list[str]:
        path = self.folder / f"{self.name}.kubeconfig"
        kubeconfig.write(path, f"https://127.0.0.1:{self.network.port}", self.authority, self.token)
        command = [sys.executable, "-m", "volcano_py.cli.main", self.program, f"--kubeconfig={path}"]
        if self.program == SCHEDULER:
            command += ["--schedule-period=200ms", f"--record={self.folder / self.name}.records"]
        else:
            command += ["--watch-with-kopf=false", "--kube-api-qps=500", "--kube-api-burst=500"]
        return command + self.times.flags()

    async def start(self) -> None:
        """Start the process, unless it runs."""
        if self.process is not None and self.process.returncode is None:
            return
        self.starts += 1
        # Modules are found in PYTHONPATH before the installed package, and the working folder has none.
        environment = {**os.environ, "PYTHONPATH": str(self.source)}
        with self.log.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                *self._command(), stdout=log, stderr=log, cwd=self.folder, env=environment, start_new_session=True
            )

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def children(self) -> list[int]:
        """The dispatcher of a scheduler."""
        try:
            text = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text()
        except OSError:
            return []
        return [int(pid) for pid in text.split()]

    async def kill(self) -> None:
        """SIGKILL to the process and its children: a machine that is lost."""
        self._signal(signal.SIGKILL, [self.pid, *self.children()])
        await self._ended()

    async def kill_parent(self) -> None:
        """SIGKILL to the process alone."""
        self._signal(signal.SIGKILL, [self.pid])
        await self._ended()

    def kill_children(self) -> None:
        """SIGKILL to the dispatcher alone."""
        self._signal(signal.SIGKILL, self.children())

    def suspend(self) -> None:
        """SIGSTOP to the process and its children."""
        self._stopped = [self.pid, *self.children()]
        self._signal(signal.SIGSTOP, self._stopped)

    def resume(self) -> None:
        """SIGCONT to what was suspended."""
        self._signal(signal.SIGCONT, self._stopped)
        self._stopped = []

    def fill_disk(self, full: bool) -> None:
        """Whether writes to files fail: the log, recordings, dumps."""
        for pid in (self.pid, *self.children()):
            hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)[1]
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (0 if full else hard, hard))

    def dump(self) -> None:
        """SIGUSR1: the scheduler writes its cache to a file."""
        self._signal(signal.SIGUSR1, [self.pid])

    async def stop(self) -> None:
        """SIGTERM, as when a Deployment replaces the pod."""
        if self.process is None or self.process.returncode is not None:
            return
        if self._stopped:
            self.resume()
        self.process.terminate()
        try:
            async with asyncio.timeout(15):
                await self._ended()
        except TimeoutError:
            await self.kill()

    async def _ended(self) -> None:
        assert self.process is not None
        await self.process.wait()

    @staticmethod
    def _signal(number: int, pids: list[int]) -> None:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
