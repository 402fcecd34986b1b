"""A sandbox with replicas, work that never pauses, and the history of what happened."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests import waiting
from tests.ha.history import Leases, Pods, Write, writes
from tests.ha.network import Network
from tests.ha.replicas import CONTROLLERS, LEASES, REPOSITORY, SCHEDULER, Replica, Times
from volcano_py.api.kinds import JOB
from volcano_py.kube.client import Client
from volcano_py.sandbox.apiserver.registry.request import User
from volcano_py.sandbox.apiserver.storage.store import Event
from volcano_py.sandbox.cluster import Sandbox
from volcano_py.sandbox.shapes import parse

NODES, CPUS, GANG = 4, 4, 3
PAUSE = 0.35
"""Seconds between two Jobs, which together request less than the nodes have."""
WORK = {SCHEDULER: "pods/binding", CONTROLLERS: "pods"}
"""What shows that a program works: bindings and new pods."""
ADMINISTRATORS = ("system:masters", "system:authenticated")


def job(name: str) -> dict[str, Any]:
    """A gang whose pods run for a second, of which each node has space for one and a part of another one."""
    container = {
        "name": "main",
        "image": "busybox",
        "command": ["sleep", "1"],
        "resources": {"requests": {"cpu": "1", "memory": "64Mi"}},
    }
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "schedulerName": "volcano",
            "queue": "default",
            "minAvailable": GANG,
            "tasks": [{"name": "work", "replicas": GANG, "template": template}],
        },
    }


@dataclass
class Site:
    """`wait` of all methods: until the time budget of tests is used up."""

    sandbox: Sandbox
    client: Client
    folder: Path
    times: Times
    replicas: dict[str, list[Replica]]
    leases: Leases = field(default_factory=Leases)
    pods: Pods = field(default_factory=lambda: Pods({}))
    jobs: list[str] = field(default_factory=list)
    """Names of the Jobs of the current case."""
    log_start: int = 0
    """Where the current case begins in the audit log."""
    _names: itertools.count[int] = field(default_factory=itertools.count)

    @property
    def audit(self) -> Path:
        return self.folder / "audit.log"

    async def begin(self) -> None:
        """Begin a case: all replicas run, no pod does, and there is no history."""
        for replica in (*self.replicas[SCHEDULER], *self.replicas[CONTROLLERS]):
            await replica.start()
        self.jobs = []
        self.log_start = self.audit.stat().st_size
        self.pods = Pods({f"node-{i}": float(CPUS) for i in range(NODES)})

    def writes(self) -> list[Write]:
        """The writes of this case so far, up to 0.2 s ago."""
        return writes(self.audit, self.log_start)

    def users(self, program: str) -> list[str]:
        return [replica.name for replica in self.replicas[program]]

    async def leader(self, program: str) -> Replica:
        """The replica that leads, once there is one that has worked."""

        async def found() -> Replica | None:
            names = [w.user for w in self.writes() if w.resource in (WORK[program], "leases")]
            users = self.users(program)
            names = [name for name in names if name in users]
            if not names or not self.leases.holder(LEASES[program]):
                return None
            return next(r for r in self.replicas[program] if r.name == names[-1])

        return await waiting.until(found, f"no {program} leads")

    @contextlib.asynccontextmanager
    async def busy(self) -> AsyncIterator[None]:
        """Jobs are submitted all the time, and the first pods have been bound."""
        enough = asyncio.Event()
        submitting = asyncio.create_task(self._submit(enough))
        try:
            await self.until(lambda: len(self.pods.nodes) >= GANG, "nothing is bound")
            yield
        finally:
            enough.set()
            await submitting

    async def _submit(self, enough: asyncio.Event) -> None:
        while not enough.is_set():
            name = f"j{next(self._names):04d}"
            await self.client.create(JOB, job(name))
            self.jobs.append(name)
            await asyncio.sleep(PAUSE)

    async def until(self, holds: Callable[[], Any], otherwise: str) -> None:
        async def held() -> Any:
            return holds()

        await waiting.until(held, otherwise)

    async def works(self, program: str, after: float) -> float:
        """When a replica first did the work of the program after a time."""

        async def found() -> float | None:
            users = self.users(program)
            done = (w.at for w in self.writes() if w.resource == WORK[program] and w.user in users and w.at > after)
            return next(done, None)

        return await waiting.until(found, f"no {program} works")

    async def completed(self) -> None:
        """Wait until all Jobs are Completed."""
        left: list[str] = []

        async def all_completed() -> bool:
            found = await self.client.list(JOB, "default")
            left[:] = [
                one["metadata"]["name"]
                for one in found
                if ((one.get("status") or {}).get("state") or {}).get("phase") != "Completed"
            ]
            return not left

        await waiting.until(all_completed, "Jobs are not Completed", 2)
        await asyncio.sleep(0.3)  # for the audit log


@contextlib.asynccontextmanager
async def site(
    folder: Path, times: Times, *, schedulers: int = 2, managers: int = 3, source: Path = REPOSITORY
) -> AsyncIterator[Site]:
    """Two schedulers and three controller-managers, none of which has started."""
    names = {SCHEDULER: [f"scheduler-{i}" for i in range(schedulers)]}
    names[CONTROLLERS] = [f"controllers-{i}" for i in range(managers)]
    users = {f"token-of-{name}": User(name, ADMINISTRATORS) for one in names.values() for name in one}
    async with contextlib.AsyncExitStack() as stack:
        sandbox = await stack.enter_async_context(
            Sandbox(
                NODES,
                node_shapes=[parse(f"cpu={CPUS},memory=16Gi")],
                path=folder / "kubeconfig",
                audit=folder / "audit.log",
                users=users,
            )
        )
        waiting.observe(sandbox)
        client = await stack.enter_async_context(Client.from_kubeconfig(sandbox.kubeconfig, timeout=60.0))
        replicas: dict[str, list[Replica]] = {}
        for program, chosen in names.items():
            replicas[program] = []
            for name in chosen:
                network = await stack.enter_async_context(Network(sandbox.server.port))
                token = f"token-of-{name}"
                replica = Replica(name, program, network, token, sandbox.authority, folder, times, source)
                replicas[program].append(replica)
        made = Site(sandbox, client, folder, times, replicas)
        collections = sandbox.api.store.collections

        def saw_pod(event: Event) -> None:
            made.pods.see(event.type, event.entry.load(), time.time())

        def saw_lease(event: Event) -> None:
            made.leases.see(event.type, event.entry.load(), time.time())

        collections["pods"].observers.append(saw_pod)
        collections["leases.coordination.k8s.io"].observers.append(saw_lease)
        try:
            yield made
        finally:
            stops: list[Awaitable[None]] = [r.stop() for one in replicas.values() for r in one]
            await asyncio.gather(*stops)
