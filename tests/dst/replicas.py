"""The replicas of the product as simulated processes: schedulers and controller-managers."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from tests.dst import pipes
from tests.dst.loop import SimulatedLoop
from tests.dst.network import SERVER, SimulatedTransport
from tests.dst.pipes import SimulatedPipe, Sockets, Subprocesses
from tests.dst.processes import Clock, Process
from volcano_py.controllers import manager
from volcano_py.controllers.options import Options as ControllerOptions
from volcano_py.kube import client as kube_client
from volcano_py.kube.client import Client
from volcano_py.kube.credentials import Credentials
from volcano_py.sandbox.volcano import SCHEDULER_CONFIGMAP, SCHEDULER_KEY
from volcano_py.scheduler.configuration import extensions
from volcano_py.scheduler.configuration.options import Options
from volcano_py.scheduler.dispatch import handle, process
from volcano_py.scheduler.runtime.server import Scheduler

PROFILES = Path(__file__).with_name("profiles.yaml")
RESTART = (0.5, 3.0)
"""Seconds between the end of a process and its next start, as the kubelet restarts containers."""


def install() -> None:
    """Connect the product with the simulated network, pipes and processes."""
    kube_client.Transport = SimulatedTransport  # type: ignore[assignment, misc]
    Client.for_flags = classmethod(  # type: ignore[method-assign, assignment]
        lambda cls, kubeconfig=None, master=None, **options: cls(Credentials(server=SERVER), **options)
    )
    handle.socket = Sockets  # type: ignore[assignment]
    handle.subprocess = Subprocesses  # type: ignore[assignment]
    handle.Pipe = process.Pipe = SimulatedPipe  # type: ignore[assignment, misc]
    process.end_parent = pipes.end_parent
    # The installed packages, which each start of a scheduler reads.
    extensions.entry_points = cache(extensions.entry_points)  # type: ignore[assignment]
    socket.gethostname = lambda: "simulated"
    # A collection may end a coroutine that nothing refers to, at a moment that depends on the memory.
    gc.disable()
    gc.enable = gc.freeze = _nothing
    gc.collect = lambda *_: 0


def _nothing() -> None:
    pass


class Replica:
    """One container: its process is started again whenever it ends."""

    def __init__(self, loop: SimulatedLoop, name: str, component: str, log: Callable[[str], None]) -> None:
        self.loop = loop
        self.name = name
        self.component = component
        self.clock = Clock()
        self.log = log
        self.process: Process | None = None
        self.lives = 0
        self.wanted = True
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Start the process."""
        if not self.wanted or self.process is not None:
            return
        self.lives += 1
        self.process = process = Process(self.loop, f"{self.name}.{self.lives}", self.component, self.clock)
        task = process.start(self._main(process))
        task.add_done_callback(lambda _: self._ended(process, task))

    async def _main(self, process: Process) -> None:
        raise NotImplementedError

    def _ended(self, process: Process, task: asyncio.Task[Any]) -> None:
        error = None if task.cancelled() else task.exception()
        self.log(f"{process.name} has ended: {error!r}" if error is not None else f"{process.name} has ended")
        process.kill()
        self.process = None
        self._timer = self.loop.call_later(RESTART[0] + (self.lives % 5) * 0.5, self.start)

    def processes(self) -> list[Process]:
        """The process and its children that are alive."""
        if self.process is None:
            return []
        return [p for p in (self.process, *self.process.children) if p.alive]

    def kill(self) -> None:
        """End the process as `kill -9` does; its dispatcher sees its pipe closed, and ends itself."""
        if self.process is not None:
            self.process.kill()

    def heal(self) -> None:
        """End all faults of this replica."""
        for mine in self.processes():
            mine.cut_off = False
            if mine.stopped:
                mine.go_on()


class SchedulerReplica(Replica):
    """A decider with its dispatcher."""

    scheduler: Scheduler | None = None
    verify = False
    """Whether each cycle compares the incremental model with one that is built from scratch, which takes time."""
    profiles = False
    """Whether it also schedules pod by pod, as kube-scheduler does."""
    sharded = False
    """Whether it uses only the nodes of its shard."""

    async def _main(self, process: Process) -> None:
        pipes.ALL.append(process)
        namespace, name = SCHEDULER_CONFIGMAP
        options = Options(
            scheduler_configmap=(namespace, name, SCHEDULER_KEY),
            cache_dumper=False,
            schedule_period=10.0,
            verify_incremental=self.verify,
            config=str(PROFILES) if self.profiles else "",
            sharding_mode="hard" if self.sharded else "none",
            kube_api_qps=200.0,
            kube_api_burst=400,
        )
        self.scheduler = Scheduler(options)
        await self.scheduler.run()

    @property
    def leading(self) -> bool:
        """Whether it leads, and makes decisions."""
        return self.process is not None and self.scheduler is not None and self.scheduler.handle.deciding


class ControllerReplica(Replica):
    """A controller-manager."""

    more: tuple[str, ...] = ()
    """Controllers that only some runs have."""

    async def _main(self, process: Process) -> None:
        controllers = ["job-controller", "queue-controller", "pg-controller", "gc-controller", *self.more]
        options = ControllerOptions(watch_with_kopf=False, controllers=controllers, shard_sync_period=5.0)
        async with Client.for_flags(qps=options.kube_api_qps, burst=options.kube_api_burst) as client:
            with contextlib.suppress(asyncio.CancelledError):
                await manager.run(client, options)
