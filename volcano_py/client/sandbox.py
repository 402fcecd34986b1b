"""`with sandbox() as cluster:`: a cluster in this process, so that tests of pipelines run without one.

The API server, the nodes and Kubernetes' controllers run in the background thread of the client, the scheduler and the
controllers of volcano_py as child processes (docs/sandbox.md). It requires the extra [sandbox].
"""

from __future__ import annotations

import asyncio
import atexit
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from volcano_py.api.kinds import CONFIGMAP, QUEUE
from volcano_py.client.background import run
from volcano_py.client.errors import ClientError, Invalid, MissingExtra, ServerError
from volcano_py.client.sync import Client
from volcano_py.kube.client import Client as KubeClient
from volcano_py.kube.errors import KubeError

if TYPE_CHECKING:
    from volcano_py.sandbox.cluster import Sandbox

START_SECONDS = 120.0
"""Seconds for which the scheduler and the controllers may start."""


class SandboxCluster:
    """A running cluster. `client` is connected to it; `kubeconfig` is for other programs, for example as KUBECONFIG."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        self._sandbox, self._folder = sandbox, folder
        self.kubeconfig = str(sandbox.kubeconfig)
        self.client = Client(self.kubeconfig)

    def __repr__(self) -> str:
        return f"<SandboxCluster {self._sandbox.url} nodes={self._sandbox.nodes}>"

    def speed(self, factor: float) -> None:
        """Let `factor` simulated seconds pass in each second, for the run times of simulated containers."""
        manifest = {"metadata": {"name": "sandbox-clock", "namespace": "kube-system"}, "data": {"speed": str(factor)}}
        run(_set_speed(self.client, manifest))


async def _set_speed(client: Client, manifest: dict[str, Any]) -> None:
    api = client._client.api
    await api.patch(
        CONFIGMAP,
        "sandbox-clock",
        {"apiVersion": "v1", "kind": "ConfigMap", **manifest},
        "kube-system",
        patch_type="apply",
        force=True,
    )


class sandbox:
    """A cluster for a `with` block, or `async with` block.

    `nodes`: their number; `cpus`, `memory`, `gpus`: of each; `shape`: all resources of each instead, as for `volcano-py
    sandbox up --node-shape`. `run_commands`: whether containers' commands run as processes of this machine, with the
    rights of this process; by default they are simulated: `sleep`, `echo` and `exit` do what they say, and other
    commands run until they are deleted. `speed`: simulated seconds in each second. Raises ClientError.
    """

    def __init__(
        self,
        nodes: int = 3,
        *,
        cpus: int = 8,
        memory: str = "32Gi",
        gpus: int = 0,
        shape: str = "",
        run_commands: bool = False,
        speed: float = 1.0,
    ) -> None:
        self._nodes, self._run_commands, self._speed = nodes, run_commands, speed
        self._shape = shape or f"cpu={cpus},memory={memory}" + (f",nvidia.com/gpu={gpus}" if gpus else "")
        self._cluster: SandboxCluster | None = None

    def __enter__(self) -> SandboxCluster:
        return self.start()

    def __exit__(self, *exc: object) -> None:
        self.stop()

    async def __aenter__(self) -> SandboxCluster:
        return await asyncio.to_thread(self.start)

    async def __aexit__(self, *exc: object) -> None:
        await asyncio.to_thread(self.stop)

    def start(self) -> SandboxCluster:
        """Start the cluster, for use without a `with` block."""
        from volcano_py.sandbox.terminal import missing_extra

        if problem := missing_extra():
            text, _, remedy = problem.partition("; ")
            raise MissingExtra(text, object="sandbox", remedy=remedy)
        folder = Path(tempfile.mkdtemp(prefix="volcano-client-"))
        try:
            made = run(_started(self._nodes, self._shape, folder, self._run_commands))
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        self._cluster = SandboxCluster(made, folder)
        atexit.register(self.stop)  # a notebook ends without it
        if self._speed != 1.0:
            self._cluster.speed(self._speed)
        return self._cluster

    def stop(self) -> None:
        """Stop the cluster, and delete its files."""
        if self._cluster is None:
            return
        cluster, self._cluster = self._cluster, None
        atexit.unregister(self.stop)
        cluster.client.close()
        run(cluster._sandbox.stop())
        shutil.rmtree(cluster._folder, ignore_errors=True)


async def _started(nodes: int, shape: str, folder: Path, run_commands: bool) -> Sandbox:
    from volcano_py.sandbox.cluster import Sandbox, SandboxError
    from volcano_py.sandbox.shapes import parse

    try:
        shapes = [parse(shape)]
    except ValueError as error:
        raise Invalid(
            str(error), object="sandbox", field="shape", remedy='write quantities such as "32Gi" for memory'
        ) from None
    made = Sandbox(
        nodes,
        node_shapes=shapes,
        components=("scheduler", "controller-manager"),
        path=folder / "kubeconfig",
        logs=folder / "logs",
        run_commands=run_commands,
    )
    try:
        await made.start()
        await _ready(made, folder)
    except SandboxError as error:
        await made.stop()
        raise ServerError(str(error), object="sandbox", remedy="correct it and start again") from None
    except BaseException:
        await made.stop()
        raise
    return made


async def _ready(sandbox: Sandbox, folder: Path) -> None:
    """Wait until the queue controller has opened the queue and the scheduler has counted what it uses."""
    deadline = time.monotonic() + START_SECONDS
    async with KubeClient.from_kubeconfig(sandbox.kubeconfig) as client:
        while time.monotonic() < deadline:
            try:
                status = (await client.get(QUEUE, "default")).get("status") or {}
            except KubeError:
                status = {}
            if status.get("state") == "Open" and "allocated" in status:
                return
            if sandbox.components is not None and (ended := sandbox.components.ended()):
                raise _not_started(folder, f"{', '.join(ended)} ended")
            await asyncio.sleep(0.05)
    raise _not_started(folder, f"the components do not respond after {START_SECONDS:g} s")


def _not_started(folder: Path, why: str) -> ClientError:
    last = []
    for log in sorted((folder / "logs").glob("*.log")):
        lines = log.read_text(errors="replace").strip().splitlines()
        last += [f"{log.stem}: {lines[-1]}"] if lines else []
    return ServerError(f"{why} ({'; '.join(last)})", object="sandbox", remedy="correct the cause and start again")
