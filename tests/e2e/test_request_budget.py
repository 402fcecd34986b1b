"""What each life of a pod costs the API server: the exact requests of our programs, by verb and resource.

One more request fails the test of its life: with a new request, state here and in docs/requests.md which reader needs
it. Leases, lists, watches and the copy of the last valid configuration do not depend on the number of pods and are left
out. The nodes have no kubelet, so that no count depends on when pods start. The status of queues is written at a
bounded rate, that of Jobs when the number of their pods by phase has changed: both have a limit instead of a count.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests import waiting
from tests.e2e.cluster import job, pods_of
from volcano_py.api.kinds import JOB, NODE, POD, PRIORITYCLASS, QUEUE
from volcano_py.api.resource_types import ResourceType
from volcano_py.kube.client import Client
from volcano_py.sandbox.cluster import Sandbox

PROGRAMS = ("scheduler", "dispatcher", "vc-controller-manager")
QUEUE_STATUS = "patch queues/status"
QUIET = 0.5
"""Seconds without a request after which a life is complete; the audit log is written every 0.2 s."""
PREEMPTING = """
actions: "enqueue, allocate, preempt, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
"""

Manifest = dict[str, Any]


class Site:
    """A cluster whose requests are counted."""

    def __init__(self, client: Client, log: Path) -> None:
        self.client = client
        self._log = log
        self._after = 0

    def _lines(self) -> list[bytes]:
        return self._log.read_bytes().splitlines()

    def _ours(self, lines: list[bytes]) -> Counter[str]:
        found: Counter[str] = Counter()
        for line in lines:
            event = orjson.loads(line)
            about = event.get("objectRef", {})
            what = "/".join(filter(None, (about.get("resource", ""), about.get("subresource", ""))))
            ours = event["userAgent"].partition("/")[2] in PROGRAMS
            if ours and what not in ("", "leases", "configmaps") and event["verb"] not in ("watch", "list"):
                found[f"{event['verb']} {what}"] += 1
        return found

    async def settled(self) -> None:
        """Wait until our programs send nothing, and count from here on."""
        before = -1
        while (now := self._ours(self._lines()).total()) != before:
            before = now
            await asyncio.sleep(QUIET)
        self._after = len(self._lines())

    async def cost(self, complete: Callable[[], Awaitable[Any]], otherwise: str) -> dict[str, int]:
        """The requests until something holds, and until none follows; without the status of queues."""
        await waiting.until(complete, otherwise)
        after = self._after
        await self.settled()
        found = self._ours(self._lines()[after:])
        # two queues (root and default), at most every 5 s by the scheduler and by the controllers
        assert found.pop(QUEUE_STATUS, 0) <= 8
        return dict(sorted(found.items()))

    async def gone(self, rt: ResourceType) -> bool:
        return not await self.client.list(rt, "default")

    async def all_bound(self, name: str, pods: int) -> bool:
        found = await pods_of(self.client, name)
        return len(found) == pods and all(p["spec"].get("nodeName") for p in found)

    async def reported(self, name: str) -> bool:
        pods = {p["metadata"]["name"]: p for p in await self.client.list(POD, "default")}
        status = pods.get(name, {}).get("status") or {}
        return any(c["type"] == "PodScheduled" for c in status.get("conditions") or ())

    async def bound(self, *names: str) -> bool:
        pods = {p["metadata"]["name"]: p for p in await self.client.list(POD, "default")}
        return all(name in pods and pods[name]["spec"].get("nodeName") for name in names)


@asynccontextmanager
async def site(
    tmp_path: Path, *nodes: Manifest, conf: str = "", controllers: tuple[str, ...] = ()
) -> AsyncIterator[Site]:
    arguments = {"controller-manager": controllers}
    if conf:
        (tmp_path / "conf.yaml").write_text(conf)
        arguments["scheduler"] = (f"--scheduler-conf={tmp_path / 'conf.yaml'}",)
    async with (
        Sandbox(
            list(nodes),
            components=("scheduler", "controller-manager"),
            component_arguments=arguments,
            path=tmp_path / "kubeconfig",
            logs=tmp_path / "logs",
            audit=tmp_path / "audit.log",
            hollow=False,
        ) as sandbox,
        Client.from_kubeconfig(sandbox.kubeconfig) as client,
    ):
        waiting.observe(sandbox)

        async def is_open() -> bool:
            return ((await client.get(QUEUE, "default")).get("status") or {}).get("state") == "Open"

        await waiting.until(is_open, "the default queue is not opened")
        made = Site(client, tmp_path / "audit.log")
        await client.create(POD, pod("first"), "default")  # the scheduler is at work
        await waiting.until(lambda: made.bound("first"), "the first pod is not bound")
        await client.delete(POD, "first", "default", grace_period_seconds=0)
        await made.settled()
        yield made


def node(name: str, cpu: str) -> Manifest:
    have = {"cpu": cpu, "memory": "64Gi", "pods": "110"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    status = {"allocatable": have, "capacity": have, "conditions": [ready]}
    return {"apiVersion": NODE.api_version, "kind": "Node", "metadata": {"name": name}, "status": status}


def pod(name: str, cpu: str = "100m", priority: str = "", **metadata: Any) -> Manifest:
    container = {"name": "c", "image": "busybox", "resources": {"requests": {"cpu": cpu}}}
    spec: Manifest = {"schedulerName": "volcano", "containers": [container]}
    if priority:
        spec["priorityClassName"] = priority
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", **metadata},
        "spec": spec,
    }


async def test_the_life_of_plain_pods_and_jobs(tmp_path: Path) -> None:
    async with site(tmp_path, node("a", "16"), node("b", "16")) as at:
        await at.client.create(POD, pod("one"), "default")
        found = await at.cost(lambda: at.bound("one"), "the pod is not bound")
        assert found == {"create events": 1, "create pods/binding": 1}

        names = [f"many-{i}" for i in range(10)]
        await asyncio.gather(*(at.client.create(POD, pod(name), "default") for name in names))
        found = await at.cost(lambda: at.bound(*names), "the pods are not bound")
        assert found == {"create events": 10, "create pods/binding": 10}

        for name in ("one", *names):
            await at.client.delete(POD, name, "default", grace_period_seconds=0)
        assert await at.cost(lambda: at.gone(POD), "the pods are not deleted") == {}

        await at.client.create(JOB, job("job", 20, "100m"), "default")
        found = await at.cost(lambda: at.all_bound("job", 20), "the Job is not bound")
        assert found.pop("update jobs/status") <= 2  # Pending, with the plugins that must be undone; the number of pods
        assert found == {
            "create events": 20,
            "create podgroups": 1,
            "create pods": 20,
            "create pods/binding": 20,
            "patch podgroups": 2,  # Inqueue, for the job controller; Running, for users
        }
        await at.client.delete(JOB, "job", "default")
        found = await at.cost(lambda: at.gone(JOB), "the Job is not deleted")
        assert found.pop("update jobs/status", 0) <= 1  # pods that ended before the Job was gone
        assert found == {}


async def test_the_life_of_what_waits(tmp_path: Path) -> None:
    async with site(tmp_path, node("a", "16"), node("b", "16")) as at:
        await at.client.create(POD, pod("large", "20"), "default")
        found = await at.cost(lambda: at.reported("large"), "the pod is not reported")
        assert found == {"create events": 1, "patch pods/status": 1}
        await at.client.create(NODE, node("c", "32"))
        found = await at.cost(lambda: at.bound("large"), "the pod is not bound")
        assert found == {"create events": 1, "create pods/binding": 1}

        await at.client.create(JOB, job("gang", 3, "14"), "default")  # 42 of 44 idle, in parts of 16, 16 and 12
        found = await at.cost(lambda: at.reported("gang-main-0"), "the gang is not reported")
        assert found.pop("update jobs/status") <= 2  # Pending, and the number of pods
        assert found == {
            "create events": 4,  # one of each pod, one of the PodGroup
            "create podgroups": 1,
            "create pods": 3,
            "patch podgroups": 2,  # Inqueue; why it waits
            "patch pods/status": 3,
        }
        await at.client.create(NODE, node("d", "32"))
        found = await at.cost(lambda: at.all_bound("gang", 3), "the gang is not bound")
        assert found.pop("update jobs/status", 0) <= 1
        assert found == {"create events": 3, "create pods/binding": 3, "patch podgroups": 1}


async def test_the_life_of_a_preemptor(tmp_path: Path) -> None:
    async with site(tmp_path, node("a", "4"), conf=PREEMPTING) as at:
        for name, value in (("low", 1), ("high", 1000)):
            kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": value}
            await at.client.create(PRIORITYCLASS, {**kind, "metadata": {"name": name}})
        victims = job("victims", 2, "1500m", minimum=1)
        victims["spec"]["priorityClassName"] = "low"
        await at.client.create(JOB, victims, "default")
        await at.cost(lambda: at.all_bound("victims", 2), "the Job is not bound")
        await at.client.create(POD, pod("first", "1500m", "high"), "default")

        async def nominated() -> bool:
            return bool((await at.client.get(POD, "first", "default"))["status"].get("nominatedNodeName"))

        found = await at.cost(nominated, "no pod is evicted for it")
        assert found.pop("update jobs/status", 0) <= 2  # of the victim's Job
        assert found == {
            "create events": 3,  # FailedScheduling of the preemptor; Evict of the pod and of its PodGroup
            "delete pods": 1,
            "get pods": 1,  # the victim may have ended since
            "patch pods/status": 2,  # the victim's conditions; the preemptor's, with its nomination
        }


@pytest.mark.slow
async def test_parity_with_pod_groups_costs_no_more_than_before(tmp_path: Path) -> None:
    conf = "deviations: parity\n" + PREEMPTING
    async with site(tmp_path, node("a", "16"), conf=conf, controllers=("--pod-groups-of-single-pods",)) as at:
        names = [f"many-{i}" for i in range(10)]
        await asyncio.gather(*(at.client.create(POD, pod(name), "default") for name in names))
        found = await at.cost(lambda: at.bound(*names), "the pods are not bound")
        events = {what: found.pop(what, 0) for what in ("create events", "patch events")}
        statuses = found.pop("patch podgroups")
        assert found == {"create podgroups": 10, "create pods/binding": 10, "patch pods": 10}
        # Inqueue and Running; another one for a group whose pod is received in a later cycle than the group.
        assert 20 <= statuses <= 30
        assert events["create events"] <= 30 and sum(events.values()) <= 40  # Volcano repeats those of PodGroups
