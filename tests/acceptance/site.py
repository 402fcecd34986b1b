"""The cluster of the acceptance suite: a sandbox of this machine, or the one of a kubeconfig (`make e2e CLUSTER=…`).

Tests use it as a user does: through the API, with objects in a namespace of their own.
"""

from __future__ import annotations

import asyncio
import os
import random
import string
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import waiting
from volcano_py.api.kinds import BY_KIND, CONFIGMAP, EVENT, JOB, NAMESPACE, NODE, POD, PODGROUP, QUEUE, ResourceType
from volcano_py.api.yaml_documents import FAST_LOADER
from volcano_py.kube.client import Client
from volcano_py.kube.errors import Forbidden, KubeError, NotFound
from volcano_py.kube.watch import watch_events
from volcano_py.sandbox.cluster import Sandbox
from volcano_py.sandbox.foreign.attachment import LABEL
from volcano_py.sandbox.shapes import parse

GROUPS_OF_SINGLE_PODS = os.environ.get("SINGLE_PODS") != "alone"
"""Whether pods that need no PodGroup get one, as with Volcano; `SINGLE_PODS=alone`: they get none."""

Manifest = dict[str, Any]

MARKS = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]
"""Marks of every module of the suite."""
KUBECONFIG = os.environ.get("CLUSTER", "")
"""The kubeconfig of a cluster on which the chart is installed; empty: a sandbox."""
HOLLOW = os.environ.get("HOLLOW", "")
"""The name of the hollow nodes that are attached to that cluster (`volcano-py sandbox nodes --name`), if any are."""
WEBHOOKS, POLICIES, VALIDATING_POLICIES = "webhooks", "policies", "validating-policies"
ADMISSION = os.environ.get("ADMISSION", WEBHOOKS)
"""What checks objects in that cluster; a server before 1.36 has by default no policies that fill in defaults."""
ORIGINAL = "volcano-py/acceptance-original"
"""Annotation of the scheduler's ConfigMap while a test has changed it: the configuration before."""
CONFIGURATION = ("volcano-system", "volcano-scheduler-configmap", "volcano-scheduler.conf")


@dataclass
class Site:
    """A namespace of a cluster, for one test. What it makes outside of the namespace goes with it."""

    client: Client
    namespace: str
    sandbox: Sandbox | None = None
    _made: list[tuple[ResourceType, str]] = field(default_factory=list)
    _shuffled: dict[str, str] = field(default_factory=dict)

    def name(self, text: str) -> str:
        """A name for an object that has no namespace; names of one test are in random order."""
        return f"{self.shuffled(text)}-{self.namespace}"

    def shuffled(self, text: str) -> str:
        """A name whose place in the order of names is random: the same for the same text."""
        if text not in self._shuffled:
            self._shuffled[text] = f"{''.join(random.choices(string.ascii_lowercase, k=3))}-{text}"
        return self._shuffled[text]

    async def create(self, manifest: Manifest) -> Manifest:
        """Create any object. Raises KubeError."""
        rt = BY_KIND[manifest["apiVersion"], manifest["kind"]]
        made: Manifest = await self.client.create(rt, manifest, self.namespace if rt.namespaced else None)
        if not rt.namespaced:
            self._made.append((rt, made["metadata"]["name"]))
        return made

    async def get(self, rt: ResourceType, name: str) -> Manifest:
        found: Manifest = await self.client.get(rt, name, self.namespace if rt.namespaced else None)
        return found

    async def patch(self, rt: ResourceType, name: str, body: Any, subresource: str | None = None) -> None:
        await self.client.patch(rt, name, body, self.namespace if rt.namespaced else None, subresource=subresource)

    async def delete(self, rt: ResourceType, name: str, **options: Any) -> None:
        await self.client.delete(rt, name, self.namespace if rt.namespaced else None, **options)

    async def job(
        self, name: str, *tasks: Manifest, cpu: str = "1", replicas: int = 1, min: int | None = None, **spec: Any
    ) -> Manifest:
        """A Job: of one task, or of `tasks`."""
        rows = tasks or (task("main", replicas, cpu=cpu),)
        total = sum(row["replicas"] for row in rows)
        body = {"schedulerName": "volcano", "minAvailable": total if min is None else min, "tasks": list(rows), **spec}
        return await self.create(
            {"apiVersion": JOB.api_version, "kind": "Job", "metadata": {"name": name}, "spec": body}
        )

    async def queue(self, text: str, **spec: Any) -> str:
        """An open queue; its name."""
        name = self.name(text)
        spec = {"weight": 1, "reclaimable": True, **spec}
        await self.create({"apiVersion": QUEUE.api_version, "kind": "Queue", "metadata": {"name": name}, "spec": spec})
        await self.until(lambda: self._open(name), f"queue {name} is not open")
        return name

    async def _open(self, name: str) -> bool:
        return bool(((await self.get(QUEUE, name)).get("status") or {}).get("state") == "Open")

    async def pods(self, job: str, *phases: str) -> list[Manifest]:
        """The pods of a Job in these phases, which are not being deleted."""
        found = await self.client.list(POD, self.namespace, label_selector=f"volcano.sh/job-name={job}")
        return [
            pod
            for pod in found
            if not pod["metadata"].get("deletionTimestamp") and (not phases or pod["status"]["phase"] in phases)
        ]

    async def running(self, job: str) -> int:
        return len(await self.pods(job, "Running"))

    async def nodes_of(self, job: str) -> list[str]:
        return sorted(pod["spec"].get("nodeName", "") for pod in await self.pods(job))

    async def phase(self, job: str) -> str:
        found = await self.get(JOB, job)
        return str(((found.get("status") or {}).get("state") or {}).get("phase", ""))

    async def group(self, job: str) -> Manifest:
        """The PodGroup of a Job; empty when there is none yet."""
        for found in await self.client.list(PODGROUP, self.namespace):
            if any(owner["name"] == job for owner in found["metadata"].get("ownerReferences") or ()):
                return dict(found)
        return {}

    async def group_phase(self, job: str) -> str:
        return str((await self.group(job)).get("status", {}).get("phase", ""))

    async def becomes(self, job: str, phase: str) -> None:
        await self.until(lambda: self._is(job, phase), f"Job {job} is not {phase}")

    async def _is(self, job: str, phase: str) -> bool:
        return await self.phase(job) == phase

    async def runs(self, job: str, count: int) -> None:
        """Wait until exactly this number of pods of a Job runs."""
        await self.until(lambda: self._runs(job, count), f"not {count} pods of {job} run")

    async def _runs(self, job: str, count: int) -> bool:
        return await self.running(job) == count

    async def waits(self, job: str) -> None:
        """Wait until the scheduler has reported that a Job cannot be scheduled."""
        await self.until(lambda: self._reported(job), f"Job {job} is not reported as unschedulable")

    async def _reported(self, job: str) -> bool:
        events = await self.client.list(EVENT, self.namespace)
        reasons = ("Unschedulable", "FailedScheduling", "NotEnoughResources")
        return any(e["reason"] in reasons and e["involvedObject"]["name"].startswith(job) for e in events)

    async def settle(self) -> None:
        """Some cycles, in which something that must not happen would happen."""
        await asyncio.sleep(1.5)

    async def until(self, holds: Callable[[], Awaitable[Any]], otherwise: str) -> Any:
        return await waiting.until(holds, otherwise)

    @asynccontextmanager
    async def phases(self, job: str) -> AsyncIterator[list[str]]:
        """The phases that a Job goes through meanwhile, each once as long as it lasts."""
        seen: list[str] = []

        async def watch() -> None:
            params = {"fieldSelector": f"metadata.name={job}"}
            async for event in watch_events(self.client, JOB.path(self.namespace), params):
                phase = ((event.object.get("status") or {}).get("state") or {}).get("phase", "")
                if phase and seen[-1:] != [phase]:
                    seen.append(phase)

        watching = asyncio.create_task(watch())
        try:
            yield seen
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    async def configure(self, text: str) -> None:
        """Put a scheduler configuration in force until the end of the test."""
        namespace, name, key = CONFIGURATION
        found = await self.client.get(CONFIGMAP, name, namespace)
        current = found["data"].get(key, "")
        if ORIGINAL not in (found["metadata"].get("annotations") or {}):
            # In the object, so that a run after one that was killed restores it, too.
            await self.client.patch(CONFIGMAP, name, {"metadata": {"annotations": {ORIGINAL: current}}}, namespace)
        if current != text:
            await self._put_in_force({"data": {key: text}})

    async def restore_configuration(self) -> None:
        """Put the scheduler configuration in force that was there before the suite changed it."""
        namespace, name, key = CONFIGURATION
        try:
            found = await self.client.get(CONFIGMAP, name, namespace)
        except NotFound:
            return
        original = (found["metadata"].get("annotations") or {}).get(ORIGINAL)
        if original is None:
            return
        body: Manifest = {"metadata": {"annotations": {ORIGINAL: None}}}
        if found["data"].get(key, "") == original:
            await self.client.patch(CONFIGMAP, name, body, namespace)
        else:
            await self._put_in_force(body | {"data": {key: original}})

    async def _last_valid(self) -> str:
        """The document that the scheduler keeps as the last valid one."""
        namespace, name, key = CONFIGURATION
        try:
            found = await self.client.get(CONFIGMAP, f"{name}-last-valid", namespace)
        except (NotFound, Forbidden):
            return ""  # another scheduler, or no right to read it
        return str((found.get("data") or {}).get(key, ""))

    async def _put_in_force(self, body: Manifest) -> None:
        """Patch the ConfigMap, and wait until the scheduler has read it."""
        namespace, name, _ = CONFIGURATION
        before = await self._in_force()
        await self.client.patch(CONFIGMAP, name, body, namespace)

        text = body["data"][CONFIGURATION[2]]

        async def taken() -> bool:
            # Of many changes in a row not each one gets an Event; the scheduler keeps each valid document.
            kept = await self._last_valid()
            return kept == text if kept else await self._in_force() > before

        await self.until(taken, "the scheduler has not taken the configuration")

    async def _in_force(self) -> int:
        events = await self.client.list(EVENT, CONFIGURATION[0])
        return sum(event.get("count", 1) for event in events if event["reason"] == "ConfigurationInForce")

    async def close(self) -> None:
        """Delete what the test has made, and restore what it has changed, also if one of the two fails."""
        try:
            await self._delete_all()
        finally:
            await self.restore_configuration()

    async def _delete_all(self) -> None:
        for job in await self.client.list(JOB, self.namespace):
            await self._remove(JOB, job["metadata"]["name"], self.namespace)
        for pod in await self.client.list(POD, self.namespace):
            await self._remove(POD, pod["metadata"]["name"], self.namespace, grace_period_seconds=0)
        for rt, name in reversed(self._made):
            await self._remove(rt, name)
        await self._remove(NAMESPACE, self.namespace)

    async def _remove(self, rt: ResourceType, name: str, namespace: str | None = None, **options: Any) -> None:
        with suppress(NotFound):
            await self.client.delete(rt, name, namespace, **options)


def task(
    name: str,
    replicas: int,
    *,
    cpu: str = "1",
    command: Sequence[str] = ("sleep", "600"),
    min: int | None = None,
    pod: Manifest | None = None,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    **more: Any,
) -> Manifest:
    """A task of a Job; `pod` has more of its pods' spec."""
    requests = {"requests": {"cpu": cpu, "memory": "64Mi"}} if cpu else {}
    container = {"name": "main", "image": "busybox", "command": list(command), "resources": requests}
    spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [container], **(pod or {})}
    template = {"metadata": {"labels": labels or {}, "annotations": annotations or {}}, "spec": spec}
    made = {"name": name, "replicas": replicas, "template": template, **more}
    return made if min is None else {**made, "minAvailable": min}


def node(name: str, cpu: str = "4", labels: dict[str, str] | None = None) -> Manifest:
    """A node, for a cluster whose nodes are simulated."""
    have = {"cpu": cpu, "memory": "32Gi", "pods": "110"}
    attached = {LABEL: HOLLOW} if HOLLOW else {}
    return {
        "apiVersion": NODE.api_version,
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **attached, **(labels or {})}},
        "status": {"allocatable": have, "capacity": have},
    }


@asynccontextmanager
async def site(sandbox: Sandbox | None, kubeconfig: str) -> AsyncIterator[Site]:
    """A new namespace with a random name."""
    namespace = "at-" + "".join(random.choices(string.ascii_lowercase, k=8))
    async with Client.from_kubeconfig(kubeconfig) as client:
        await client.create(NAMESPACE, {"metadata": {"name": namespace}})
        made = Site(client, namespace, sandbox)
        try:
            yield made
        finally:
            await made.close()


@asynccontextmanager
async def cluster(folder: Path, nodes: int = 4, **options: Any) -> AsyncIterator[Sandbox]:
    """A sandbox whose scheduler has the acceptance suite's configuration and whose first queue is open."""
    controllers = ("--controllers=*", f"--pod-groups-of-single-pods={str(GROUPS_OF_SINGLE_PODS).lower()}")
    options = {"component_arguments": {"controller-manager": controllers}, **options}
    sandbox = Sandbox(
        nodes,
        node_shapes=[parse("cpu=4,memory=8Gi")],
        components=("scheduler", "controller-manager"),
        path=folder / "kubeconfig",
        logs=folder / "logs",
        backoff=0.1,
        **options,
    )
    async with sandbox:
        waiting.observe(sandbox)
        async with Client.from_kubeconfig(sandbox.kubeconfig) as client:

            async def opened() -> bool:
                try:
                    found = await client.get(QUEUE, "default")
                except KubeError:
                    return False
                # The controllers set the state, and the scheduler what is allocated.
                return {"state", "allocated"} <= (found.get("status") or {}).keys()

            await waiting.until(opened, "the default queue is not open")
        yield sandbox


def table(path: Path) -> Manifest:
    """A YAML table beside a test."""
    loaded: Manifest = yaml.load(path.read_text(), FAST_LOADER)
    return loaded
