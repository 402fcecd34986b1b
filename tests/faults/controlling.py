"""Controller-manager, HyperNode controller and webhook-manager in this process, behind a proxy in front of a sandbox.

Each has work that shows whether all of its parts still do theirs.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import aiohttp

from tests.faults.proxy import LyingProxy
from tests.faults.tasks import OWNER
from volcano_py.api import kinds
from volcano_py.api.kinds import ResourceType
from volcano_py.controllers import manager
from volcano_py.controllers.hypernode.controller import HyperNodeController
from volcano_py.controllers.options import Options
from volcano_py.kube.client import Client
from volcano_py.kube.errors import AlreadyExists, Conflict, NotFound
from volcano_py.sandbox.cluster import Sandbox
from volcano_py.webhooks import manager as webhooks
from volcano_py.webhooks.options import Options as WebhookOptions

Manifest = dict[str, Any]
Run = Callable[[Client], Awaitable[None]]

CONFIGURATION = "volcano-admission-service-jobs-validate"
QUICK = {"leader_elect_lease_duration": 3.0, "leader_elect_renew_deadline": 2.0, "leader_elect_retry_period": 0.3}


async def until(
    holds: Callable[[], Any], otherwise: Callable[[], Any], seconds: float = 30.0, pause: float = 0.02
) -> Any:
    """Wait for something to become true, looking every `pause` seconds; what it is then.

    `otherwise` says what is missing.
    """
    deadline = time.monotonic() + seconds
    while True:
        found = holds()
        if isinstance(found, Awaitable):
            found = await found
        if found:
            return found
        assert time.monotonic() < deadline, f"after {seconds:g} s: {otherwise()}"
        await asyncio.sleep(pause)


def free_port() -> int:
    """A port below those that the kernel gives to outgoing connections: it is free again after a restart, too."""
    while True:
        port = random.SystemRandom().randrange(15000, 30000)  # the same sequence in two test processes would meet
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def manifest(rt: ResourceType, name: str, **parts: Any) -> Manifest:
    """An object of the default namespace, or of the cluster."""
    metadata = {"name": name} | ({"namespace": "default"} if rt.namespaced else {}) | parts.pop("metadata", {})
    return {"apiVersion": rt.api_version, "kind": rt.kind, "metadata": metadata, **parts}


def pod_spec() -> Manifest:
    container = {"name": "main", "image": "busybox:1", "resources": {"requests": {"cpu": "1"}}}
    return {"schedulerName": "volcano", "containers": [container]}


def job_spec(**spec: Any) -> Manifest:
    task = {"name": "work", "replicas": 1, "minAvailable": 1, "template": {"spec": pod_spec()}}
    return {"schedulerName": "volcano", "queue": "default", "minAvailable": 1, "tasks": [task]} | spec


@dataclass
class Component:
    """A component that runs as a task, is restarted when it ends, as a container would be, and answers /healthz."""

    run: Run
    kubeconfig: str
    health: int
    task: asyncio.Task[None] | None = None
    ended: list[BaseException | None] = field(default_factory=list)
    """What ended it, each time."""

    async def _life(self) -> None:
        OWNER.set("component")
        async with Client.from_kubeconfig(self.kubeconfig) as client:
            await self.run(client)

    def start(self) -> None:
        self.task = asyncio.create_task(self._life(), name="component")

    def restart_if_ended(self) -> None:
        if self.task is not None and self.task.done():
            self.ended.append(self.task.exception())
            self.start()

    async def stop(self) -> None:
        if self.task is not None:
            self.task.cancel()
            await asyncio.wait([self.task])
            if not self.task.cancelled():
                self.task.exception()

    async def healthy(self) -> str:
        """The answer of /healthz; empty when there is none."""
        try:
            async with (
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as session,
                session.get(f"http://127.0.0.1:{self.health}/healthz") as answer,
            ):
                return await answer.text()
        except (aiohttp.ClientError, TimeoutError):
            return ""


class Work(Protocol):
    """What a component is asked to do, to see whether it works."""

    missing: str
    """What has not happened yet."""

    async def submit(self) -> None:
        """Ask for it."""

    async def done(self) -> bool:
        """Whether all that follows has happened."""


class ControllerWork:
    """Objects for every controller, numbered; `done` says whether all that follows from them has happened."""

    def __init__(self, client: Client, number: int) -> None:
        self._client = client
        self.number = number
        self.missing = ""
        """What has not happened yet."""

    async def submit(self) -> None:
        n = self.number
        keys = ["--ssh-private-key=a", "--ssh-public-key=b"]
        spec = job_spec(plugins={"svc": [], "ssh": keys, "env": []})
        flows = [{"name": f"t{n}"}]
        member = {"type": "Node", "selector": {"labelMatch": {"matchLabels": {"n": str(n)}}}}
        for one in (
            manifest(kinds.NODE, f"n{n}", metadata={"labels": {"n": str(n)}}),
            manifest(kinds.JOB, f"j{n}", spec=spec),
            manifest(kinds.QUEUE, f"q{n}", spec={"weight": 1}),
            manifest(kinds.JOBTEMPLATE, f"t{n}", spec=job_spec()),
            manifest(kinds.JOBFLOW, f"f{n}", spec={"jobRetainPolicy": "retain", "flows": flows}),
            manifest(kinds.CRONJOB, f"c{n}", spec={"schedule": "0 0 1 1 *", "jobTemplate": {"spec": job_spec()}}),
            manifest(kinds.POD, f"p{n}", spec=pod_spec()),
            manifest(kinds.HYPERNODE, f"h{n}", spec={"tier": 1, "members": [member]}),
        ):
            with contextlib.suppress(AlreadyExists):
                await self._client.create(kinds.for_manifest(one), one)
        stale = {"status": {"active": [{"kind": "Job", "name": "gone", "namespace": "default", "uid": "gone"}]}}
        await self._client.patch(kinds.CRONJOB, f"c{n}", stale, "default", subresource="status")

    async def done(self) -> bool:
        """Whether all controllers have done their part; plays the scheduler meanwhile."""
        n = self.number
        for name, happened in (
            ("the PodGroup of the Job is not admitted", self._admitted),
            ("the Job has no pod", lambda: self._get(kinds.POD, f"j{n}-work-0")),
            ("the plugins' objects are not made", self._plugged),
            ("the queue is not open", lambda: self._field(kinds.QUEUE, f"q{n}", "status", "state")),
            ("the flow has no job", lambda: self._get(kinds.JOB, f"f{n}-t{n}")),
            ("the pod has no PodGroup", lambda: self._field(kinds.POD, f"p{n}", "metadata", "annotations")),
            ("the HyperNode is not counted", lambda: self._field(kinds.HYPERNODE, f"h{n}", "status", "nodeCount")),
            ("the CronJob still names a Job that is gone", self._cron_tidied),
        ):
            if not await happened():
                self.missing = name
                return False
        return True

    async def terminate(self) -> None:
        target = {"apiVersion": kinds.JOB.api_version, "kind": "Job", "name": f"j{self.number}", "uid": "any"}
        command = manifest(kinds.COMMAND, f"end{self.number}", action="TerminateJob", target=target)
        with contextlib.suppress(AlreadyExists):
            await self._client.create(kinds.COMMAND, command)

    async def terminated(self) -> bool:
        """Whether the Job has ended and its plugins' objects are gone."""
        state = (await self._field(kinds.JOB, f"j{self.number}", "status", "state")) or {}
        return state.get("phase") == "Terminated" and not await self._get(kinds.SECRET, f"j{self.number}-ssh")

    async def _get(self, rt: ResourceType, name: str) -> Manifest | None:
        try:
            found: Manifest = await self._client.get(rt, name, "default" if rt.namespaced else None)
        except NotFound:
            return None
        return found

    async def _field(self, rt: ResourceType, name: str, *path: str) -> Any:
        value: Any = await self._get(rt, name)
        for key in path:
            value = (value or {}).get(key)
        return value

    async def _plugged(self) -> bool:
        n = self.number
        names = ((kinds.SECRET, f"j{n}-ssh"), (kinds.CONFIGMAP, f"j{n}-svc"), (kinds.SERVICE, f"j{n}"))
        return all([await self._get(rt, name) for rt, name in names])

    async def _admitted(self) -> bool:
        uid = await self._field(kinds.JOB, f"j{self.number}", "metadata", "uid")
        group = await self._get(kinds.PODGROUP, f"j{self.number}-{uid}")
        if group is None:
            return False
        if (group.get("status") or {}).get("phase") not in ("Inqueue", "Running"):
            body = {"status": {"phase": "Inqueue"}}
            with contextlib.suppress(Conflict, NotFound):
                await self._client.patch(kinds.PODGROUP, group["metadata"]["name"], body, "default")
        return True

    async def _cron_tidied(self) -> bool:
        return not await self._field(kinds.CRONJOB, f"c{self.number}", "status", "active")


class FlowWork:
    """A JobFlow, which kopf watches, and its Job."""

    def __init__(self, client: Client, number: int) -> None:
        self._client = client
        self._number = number
        self.missing = "the flow has no job"

    async def submit(self) -> None:
        n = self._number
        for one in (
            manifest(kinds.JOBTEMPLATE, f"t{n}", spec=job_spec()),
            manifest(kinds.JOBFLOW, f"f{n}", spec={"jobRetainPolicy": "retain", "flows": [{"name": f"t{n}"}]}),
        ):
            with contextlib.suppress(AlreadyExists):
                await self._client.create(kinds.for_manifest(one), one)

    async def done(self) -> bool:
        try:
            await self._client.get(kinds.JOB, f"f{self._number}-t{self._number}", "default")
        except NotFound:
            return False
        return True


class HyperNodeWork:
    """A node, and a HyperNode that counts it."""

    def __init__(self, client: Client, number: int) -> None:
        self._client = client
        self._number = number
        self.missing = "the HyperNode is not counted"

    async def submit(self) -> None:
        n = self._number
        member = {"type": "Node", "selector": {"labelMatch": {"matchLabels": {"n": str(n)}}}}
        for one in (
            manifest(kinds.NODE, f"n{n}", metadata={"labels": {"n": str(n)}}),
            manifest(kinds.HYPERNODE, f"h{n}", spec={"tier": 1, "members": [member]}),
        ):
            with contextlib.suppress(AlreadyExists):
                await self._client.create(kinds.for_manifest(one), one)

    async def done(self) -> bool:
        found = await self._client.get(kinds.HYPERNODE, f"h{self._number}")
        return (found.get("status") or {}).get("nodeCount") == 1


class WebhookWork:
    """A webhook configuration that is made again, the admission of a Job, and a queue that the rules know."""

    def __init__(self, client: Client, number: int, port: int) -> None:
        self._client = client
        self._number = number
        self._port = port
        self.missing = ""

    async def submit(self) -> None:
        with contextlib.suppress(NotFound):
            await self._client.delete(kinds.VALIDATINGWEBHOOKCONFIGURATION, CONFIGURATION)
        with contextlib.suppress(AlreadyExists):
            queue = manifest(kinds.QUEUE, f"q{self._number}", spec={"weight": 1})
            await self._client.create(kinds.QUEUE, {**queue, "metadata": {"name": f"q{self._number}"}})
            body = {"status": {"state": "Open"}}
            await self._client.patch(kinds.QUEUE, f"q{self._number}", body, subresource="status")

    async def done(self) -> bool:
        try:
            await self._client.get(kinds.VALIDATINGWEBHOOKCONFIGURATION, CONFIGURATION)
        except NotFound:
            self.missing = "the webhook configuration is not made"
            return False
        job = manifest(kinds.JOB, "asked", spec=job_spec(queue=f"q{self._number}"))
        request = {"uid": "u", "operation": "CREATE", "object": job, "namespace": "default"}
        review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
        url = f"https://127.0.0.1:{self._port}/jobs/validate"
        try:
            async with (
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as session,
                session.post(url, json=review, ssl=False) as answer,
            ):
                verdict = (await answer.json())["response"]
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            self.missing = f"no answer to a review: {error!r}"
            return False
        self.missing = f"the Job is rejected: {verdict}"
        return bool(verdict["allowed"])


@dataclass
class Cluster:
    """An API server without controllers, the proxy before it, and a client that goes past the proxy."""

    sandbox: Sandbox
    proxy: LyingProxy
    client: Client
    folder: Path

    def kubeconfig(self) -> str:
        return self.proxy.write_kubeconfig(self.folder / "through", self.sandbox.token)

    def controller_manager(self, **options: Any) -> Component:
        health = free_port()
        address = f"127.0.0.1:{health}"
        chosen = Options(**{**QUICK, "enable_healthz": True, "healthz_address": address, **options})
        return Component(lambda client: manager.run(client, chosen), self.kubeconfig(), health)

    def webhook_manager(self) -> tuple[Component, int]:
        """The component, and the port of its webhooks."""
        health, port = free_port(), free_port()
        chosen = WebhookOptions(
            register=True,
            listen_address="127.0.0.1",
            port=port,
            webhook_url=f"https://127.0.0.1:{port}",
            webhook_namespace="default",
            enabled_admission=("/jobs/validate", "/podgroups/mutate"),
            enable_healthz=True,
            healthz_address=f"127.0.0.1:{health}",
            graceful_shutdown_time=0.0,
        )
        return Component(lambda client: webhooks.run(client, chosen), self.kubeconfig(), health), port

    def hypernode_controller(self, **options: Any) -> Component:
        health = free_port()
        chosen = Options(**{**QUICK, **options}, enable_healthz=True, healthz_address=f"127.0.0.1:{health}")

        async def run(client: Client) -> None:
            name = "vc-hypernode-controller-manager"
            await manager.run(client, chosen, make=lambda cluster, _: [HyperNodeController(cluster)], component=name)

        return Component(run, self.kubeconfig(), health)


@contextlib.asynccontextmanager
async def cluster(folder: Path, **options: Any) -> AsyncIterator[Cluster]:
    """An API server with the proxy."""
    async with (
        Sandbox(0, components=(), controllers=None, path=folder / "kubeconfig", **options) as sandbox,
        LyingProxy(sandbox.url, sandbox.authority) as proxy,
        Client.from_kubeconfig(sandbox.kubeconfig, timeout=60.0) as client,
    ):
        yield Cluster(sandbox, proxy, client, folder)
