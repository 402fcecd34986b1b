"""A sandbox without anything of Volcano, on which helm installs the chart and kubelets run its programs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests import helm, kubectl, waiting
from tests.sandbox.clients import Http, http
from volcano_py.sandbox.cluster import Sandbox
from volcano_py.sandbox.controllers.manager import Options
from volcano_py.sandbox.shapes import parse

CHART = Path(__file__).parents[2] / "charts" / "volcano"
NAMESPACE = "volcano-system"
RELEASE = "volcano"
LOCAL = ("--set", "custom.bind_to_pod_ip=true")
"""Pods of the sandbox share this machine's ports, so each program binds those of its pod's address."""

Manifest = dict[str, Any]


class HelmFailed(AssertionError):
    """A helm command that failed; its text is what helm printed."""


@dataclass
class Cluster:
    """A sandbox, clients of it, and the folder of the test."""

    sandbox: Sandbox
    api: Http
    folder: Path

    async def helm(self, *arguments: str) -> str:
        """Run helm in the release's namespace. HelmFailed with its errors."""
        program = helm.find()
        assert program is not None, "no helm: run python -m tests.kubectl, or put helm v4 on PATH"
        return await self._run(program, *arguments, "--namespace", NAMESPACE)

    async def install(self, *values: str) -> str:
        return await self.helm("install", RELEASE, str(CHART), *LOCAL, *values)

    async def upgrade(self, *values: str) -> str:
        return await self.helm("upgrade", RELEASE, str(CHART), *LOCAL, *values)

    async def _run(self, *command: str) -> str:
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "KUBECONFIG": self.sandbox.kubeconfig}
        process = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env=environment
        )
        out, err = await waiting.within(process.communicate(), f"{command} has not ended", 2)
        if process.returncode:
            raise HelmFailed(f"{' '.join(command)}: {out.decode()}{err.decode()}")
        return out.decode()

    async def apply(self, path: Path) -> None:
        """`kubectl apply -f`, again while the kind of an object is not served yet."""
        program = kubectl.find()
        assert program is not None, "no kubectl: run python -m tests.kubectl"

        async def applied() -> bool:
            try:
                await self._run(program, "apply", "-f", str(path))
            except HelmFailed:
                return False
            return True

        await waiting.until(applied, f"{path.name} is not applied")

    async def available(self, *deployments: str) -> None:
        """Wait until Deployments of the release have as many available pods as they want."""
        for name in deployments:
            path = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{RELEASE}-{name}"

            async def ready(path: str = path) -> bool:
                found = await self.api.ok("GET", path)
                status = found.get("status") or {}
                return bool(
                    status.get("observedGeneration", 0) >= found["metadata"]["generation"]
                    and status.get("availableReplicas", 0)
                    == status.get("updatedReplicas", 0)
                    == found["spec"]["replicas"]
                    and status.get("replicas", 0) == found["spec"]["replicas"]
                )

            await waiting.until(ready, f"{name} is not available")

    async def serving(self) -> None:
        """Wait until webhooks answer, and Jobs may be submitted to the first queue."""

        async def answered() -> bool:
            status, _ = await self.api.call("POST", QUEUES + "?dryRun=All", {**QUEUE, "metadata": {"name": "probe"}})
            return status == 201

        async def opened() -> bool:
            status, queue = await self.api.call("GET", f"{QUEUES}/default")
            return status == 200 and (queue.get("status") or {}).get("state") == "Open"

        await waiting.until(answered, "no webhook answers")
        await waiting.until(opened, "the default queue is not open")

    def logs(self, component: str) -> str:
        """What the pods of a component have logged."""
        folder = Path(self.sandbox.kubeconfig + ".pods")
        found = sorted(folder.glob(f"{NAMESPACE}_{RELEASE}-{component}-*/**/*.log"))
        return "\n".join(path.read_text(errors="replace") for path in found)


QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
QUEUE: Manifest = {
    "apiVersion": "scheduling.volcano.sh/v1beta1",
    "kind": "Queue",
    "metadata": {"name": "q"},
    "spec": {"weight": 1},
}


@asynccontextmanager
async def cluster(folder: Path, monkeypatch: pytest.MonkeyPatch, **options: Any) -> AsyncIterator[Cluster]:
    """A cluster with RBAC and service accounts, real processes in pods, and a scheduler for plain pods."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    sandbox = Sandbox(
        3,
        node_shapes=[parse("cpu=8,memory=16Gi,gpu=2:A100:80Gi")],
        path=folder / "kubeconfig",
        crds=False,
        first_queues=False,
        run_commands=True,
        controllers=Options(service_accounts=True),
        audit=folder / "audit.log",
        **options,
    )
    async with sandbox, http(sandbox) as api:
        binder = asyncio.create_task(_bind_plain_pods(api))
        try:
            yield Cluster(sandbox, api, folder)
        finally:
            binder.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await binder


async def _bind_plain_pods(api: Http) -> None:
    """Bind pods of the default scheduler to the nodes in turn: the chart's own pods come before any scheduler."""
    nodes = [node["metadata"]["name"] for node in (await api.ok("GET", "/api/v1/nodes"))["items"]]
    count = 0
    while True:
        await asyncio.sleep(waiting.POLL)
        found = await api.ok("GET", "/api/v1/pods?fieldSelector=spec.nodeName=")
        for pod in found["items"]:
            if pod["spec"].get("schedulerName") == "default-scheduler":
                target = {"target": {"kind": "Node", "name": nodes[count % len(nodes)]}}
                meta = pod["metadata"]
                body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": meta["name"]}, **target}
                await api.call("POST", f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/binding", body)
                count += 1


@dataclass(frozen=True)
class Audited:
    """A request in the audit log."""

    user: str
    verb: str
    group: str
    resource: str
    namespace: str
    name: str
    code: int


def audited(log: Path, users: Sequence[str]) -> list[Audited]:
    """The requests of service accounts, by their names."""
    rows = []
    for line in log.read_text().splitlines():
        event = json.loads(line)
        name = event["user"]["username"].rpartition(":")[2]
        reference = event.get("objectRef")
        if name not in users or not event["user"]["username"].startswith("system:serviceaccount:") or not reference:
            continue
        resource = "/".join(filter(None, (reference["resource"], reference.get("subresource"))))
        rows.append(
            Audited(
                name,
                event["verb"],
                reference.get("apiGroup", ""),
                resource,
                reference.get("namespace", ""),
                reference.get("name", ""),
                event["responseStatus"]["code"],
            )
        )
    return rows
