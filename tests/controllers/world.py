"""A cluster in miniature for the controllers: the API, the controller-manager, and a stand-in for the scheduler
and kubelet."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

from tests import waiting
from tests.controllers.small_api import SmallApi
from volcano_py.api import kinds
from volcano_py.api.batch import Job
from volcano_py.api.codec import from_manifest
from volcano_py.controllers import manager
from volcano_py.controllers.options import Options
from volcano_py.kube import Client
from volcano_py.kube.credentials import Credentials


class World:
    def __init__(self, api: SmallApi) -> None:
        self.api = api
        self.options = Options(leader_elect=False, watch_with_kopf=False, queue_command_namespaces=["lab"])
        self.options.pod_groups_of_single_pods = True
        self._task: asyncio.Task[None] | None = None
        self._client: Client | None = None

    async def start(self) -> None:
        """Start the controller-manager."""
        self._client = Client(Credentials(server=self.api.url))
        self._task = asyncio.create_task(manager.run(self._client, self.options))

    async def kill(self) -> None:
        """End the controller-manager at once, whatever it is doing."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            assert self._client is not None
            await self._client.close()
            self._task = None

    async def until(self, condition: Callable[[], Any]) -> Any:
        """Wait for something to become true; what it is then."""
        try:
            async with asyncio.timeout(waiting.budget()):
                while True:
                    if self._task is not None and self._task.done():
                        self._task.result()
                    found = condition()
                    if found:
                        return found
                    await asyncio.sleep(0.005)
        except TimeoutError:
            state = {f"{key[0]}/{key[2]}": obj.get("status") for key, obj in self.api.objects.items()}
            raise AssertionError(f"did not happen; writes: {self.api.writes[-8:]}; objects: {state}") from None

    async def quiet(self, seconds: float = 0.15) -> None:
        """Wait until nothing has been written for a while."""
        while True:
            before = len(self.api.writes)
            await asyncio.sleep(seconds)
            if len(self.api.writes) == before:
                return

    # -- what one looks at

    def job(self, name: str = "train") -> dict[str, Any]:
        return self.api.get(kinds.JOB, name) or {}

    def status(self, name: str = "train") -> dict[str, Any]:
        return self.job(name).get("status") or {}

    def phase(self, name: str = "train") -> str:
        return self.status(name).get("state", {}).get("phase", "")

    def podgroups(self) -> list[dict[str, Any]]:
        return self.api.all(kinds.PODGROUP)

    def pods(self) -> dict[str, dict[str, Any]]:
        return {pod["metadata"]["name"]: pod for pod in self.api.all(kinds.POD)}

    def events(self, reason: str) -> list[str]:
        return [event["message"] for event in self.api.all(kinds.EVENT) if event["reason"] == reason]

    # -- what scheduler and kubelet do

    async def start_running(self, manifest: dict[str, Any]) -> None:
        """Create a job, and wait until all of its pods run."""
        self.api.put(manifest)
        await self.until(self.podgroups)
        self.admit()
        replicas = sum(one["replicas"] for one in manifest["spec"]["tasks"])
        await self.until(lambda: len(self.pods()) == replicas)
        self.run_pods()
        await self.until(lambda: self.phase() == "Running" and self.status().get("running") == replicas)

    def admit(self) -> None:
        """Let all PodGroups in."""
        for group in self.podgroups():
            if group.get("status", {}).get("phase", "Pending") == "Pending":
                self.api.change(kinds.PODGROUP, group["metadata"]["name"], {"status": {"phase": "Inqueue"}})

    def run_pods(self, phase: str = "Running", only: str = "", exit_code: int | None = None) -> None:
        """Bring living pods, or those whose name contains `only`, into a phase."""
        state = {} if exit_code is None else {"terminated": {"exitCode": exit_code}}
        for name, pod in self.pods().items():
            if only in name and pod["status"]["phase"] in ("Pending", "Running"):
                patch = {
                    "spec": {"nodeName": "n1"},
                    "status": {
                        "phase": phase,
                        "containerStatuses": [{"name": "main", "ready": phase == "Running", "state": state}],
                    },
                }
                self.api.change(kinds.POD, name, patch)

    async def reaped(self, condition: Callable[[], Any]) -> None:
        """Pods that are being deleted go, until something has become true."""

        def look() -> Any:
            self.reap()
            return condition()

        await self.until(look)

    def reap(self) -> None:
        """Pods that are being deleted are gone."""
        for name, pod in self.pods().items():
            if "deletionTimestamp" in pod["metadata"]:
                self.api.delete(kinds.POD, name)


def job(*tasks: dict[str, Any], name: str = "train", **spec: Any) -> dict[str, Any]:
    """A Job as the API server stores it: defaults filled in."""
    tasks = tasks or (task(),)
    minimum = sum(one["minAvailable"] for one in tasks)
    defaults = {"queue": "default", "schedulerName": "volcano", "maxRetry": 3, "minAvailable": minimum}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "lab"},
        "spec": defaults | {"tasks": list(tasks)} | spec,
    }


def task(name: str = "work", replicas: int = 2, **fields: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "busybox:1", "resources": {"requests": {"cpu": "1"}}}
    template = {"spec": {"containers": [container]}}
    defaults = {"name": name, "replicas": replicas, "minAvailable": replicas, "maxRetry": 3, "template": template}
    return defaults | fields


def command(action: str, rt: kinds.ResourceType, target: str) -> dict[str, Any]:
    reference = {"apiVersion": rt.api_version, "kind": rt.kind, "name": target, "uid": "any"}
    return {
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": {"name": f"{action.lower()}-{target}", "namespace": "lab"},
        "action": action,
        "target": reference,
    }


def queue(name: str, state: str = "Open", parent: str = "root", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"weight": 1, **spec} | ({} if name == "root" else {"parent": parent}),
        "status": {"state": state} if state else {},
    }


def typed(manifest, uid="uid-1"):
    """A manifest as the Job that the controller reads."""
    one = from_manifest(Job, manifest)
    one.metadata.uid = uid
    return one
