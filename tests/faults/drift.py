"""Differences between a scheduler's cache and the API server, and the time until the cache audit has corrected them.

    python -m tests.faults.drift

The API server changes an object without an event, or a part of the model is changed by hand. Each way has a cluster of
its own; all run at once, with the default period and the real clock.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, NamedTuple

import msgspec

from tests.kube.fake_api import FakeApi
from volcano_py.kube import Client
from volcano_py.kube.credentials import Credentials
from volcano_py.scheduler.cache.audit.audit import Audit
from volcano_py.scheduler.cache.audit.drift import Drift
from volcano_py.scheduler.cache.cache import Cache
from volcano_py.scheduler.cache.filters import ObjectFilters
from volcano_py.scheduler.configuration.options import PERIOD
from volcano_py.scheduler.model import verification
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.plan import Bind, Evict

Manifest = dict[str, Any]
KINDS = {
    "Pod": "pods",
    "Node": "nodes",
    "Queue": "queues",
    "PodGroup": "podgroups",
    "PriorityClass": "priorityclasses",
    "PodDisruptionBudget": "poddisruptionbudgets",
    "PersistentVolumeClaim": "persistentvolumeclaims",
}


def pod(name: str, node: str = "", cpu: str = "1", **metadata: Any) -> Manifest:
    spec: Manifest = {
        "schedulerName": "volcano",
        "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}],
    }
    if node:
        spec["nodeName"] = node
    annotations = {"scheduling.k8s.io/group-name": "g"}
    return {
        "metadata": {"name": name, "namespace": "default", "annotations": annotations, **metadata},
        "spec": spec,
        "status": {"phase": "Running" if node else "Pending"},
    }


def node(name: str, cpu: str = "8", **labels: str) -> Manifest:
    have = {"cpu": cpu, "memory": "64Gi", "pods": "110"}
    return {"metadata": {"name": name, "labels": labels}, "status": {"allocatable": have, "capacity": have}}


def queue(cpu: str) -> Manifest:
    return {"metadata": {"name": "default"}, "spec": {"weight": 1, "capability": {"cpu": cpu}}}


def group(minimum: int) -> Manifest:
    return {"metadata": {"name": "g", "namespace": "default"}, "spec": {"minMember": minimum, "queue": "default"}}


def budget(available: int) -> Manifest:
    return {"metadata": {"name": "b", "namespace": "default"}, "spec": {"minAvailable": available}}


def claim(volume: str) -> Manifest:
    return {"metadata": {"name": "c", "namespace": "default"}, "spec": {"volumeName": volume}}


class Watched:
    """A cache and its audit over an API server of its own."""

    def __init__(self, api: FakeApi, client: Client, **options: Any) -> None:
        self.api = api
        self.drifts: list[Drift] = []
        self.withdrawn: list[Any] = []
        self.in_flight: set[str] = set()
        self.model = Cluster(shadow_schedulers=frozenset({"volcano"}))
        self.cache = Cache(
            self.model,
            ObjectFilters(["volcano"]),
            lambda event: True,
            lambda: None,
            lambda *deleted: None,
            request_grace=0.02,
        )
        self.cache.start(client)
        self.audit = Audit(self.cache, self, options.pop("period", PERIOD), **options)

    def pending(self) -> set[str]:
        return self.in_flight

    def withdraw(self, nodes: Any, why: str) -> None:
        self.withdrawn.append((None if nodes is None else sorted(nodes), why))

    def drifted(self, drift: Drift, reported: bool) -> None:
        self.drifts.append(drift)

    def change_silently(self, kind: str, obj: Manifest) -> None:
        """The API server stores an object, and no watch returns it."""
        self.api.put(KINDS[kind], obj)
        self.api.history.pop()

    def delete_silently(self, kind: str, name: str, namespace: str = "default") -> None:
        self.api.remove(KINDS[kind], name, namespace)
        self.api.history.pop()

    def correct(self) -> bool:
        """Whether stores, model and sums are those of the API server."""
        for kind, plural in KINDS.items():
            there = {
                (f"{ns}/{name}" if ns else name): obj["metadata"]
                for (p, ns, name), obj in self.api.objects.items()
                if p == plural
            }
            store = self.cache.informers[kind].store
            versions = {key: obj.metadata.resource_version for key, obj in store.items()}
            if versions != {key: meta["resourceVersion"] for key, meta in there.items()}:
                return False
        tasks = {key: (t.node, st.IS_ALLOCATED[t.status]) for key, t in self.model.tasks.items()}
        pods = {
            f"{ns}/{name}": (obj["spec"].get("nodeName", ""), bool(obj["spec"].get("nodeName")))
            for (p, ns, name), obj in self.api.objects.items()
            if p == "pods"
        }
        return tasks == pods and not self.model.held and not list(verification.differences(self.model))


@contextlib.asynccontextmanager
async def watched(**options: Any) -> AsyncIterator[Watched]:
    """A small cluster with one pending and one running pod, whose objects have all been listed."""
    api = await FakeApi().start()
    for kind, obj in (
        ("Node", node("n1", zone="a")),
        ("Node", node("n2", zone="b")),
        ("Queue", queue("8")),
        ("PodGroup", group(1)),
        ("Pod", pod("running", "n1")),
        ("Pod", pod("waiting")),
        ("PriorityClass", {"metadata": {"name": "high"}, "value": 10}),
        ("PodDisruptionBudget", budget(1)),
        ("PersistentVolumeClaim", claim("")),
    ):
        api.put(KINDS[kind], obj)
    async with Client(Credentials(server=api.url)) as client:
        made = Watched(api, client, **options)
        tasks = [asyncio.create_task(made.cache.run()), asyncio.create_task(made.audit.run())]
        try:
            await made.cache.ready.wait()
            while not all(made.cache.informers[kind].connected for kind in KINDS):
                await asyncio.sleep(0.01)
            yield made
            assert not any(task.done() for task in tasks), tasks
        finally:
            made.cache.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
    await api.stop()


class Way(NamedTuple):
    """One way of drifting: what happens, and the first report that is expected."""

    name: str
    inject: Callable[[Watched], Any]
    kind: str
    form: str
    field: str = ""


def _usage(w: Watched) -> None:
    w.model.nodes.numbers.used[0, w.model.nodes.index["n1"]] += 4000


def _allocatable(w: Watched) -> None:
    w.model.nodes.numbers.allocatable[0, w.model.nodes.index["n2"]] = 64_000


def _counts(w: Watched) -> None:
    w.model.jobs["default/g"].counts[st.RUNNING] += 1


def _assumed(w: Watched) -> None:
    w.model.assume(Bind("default", "waiting", w.model.tasks["default/waiting"].uid, "n2", "default/g"))


def _evicted(w: Watched) -> None:
    uid = w.model.tasks["default/running"].uid
    w.model.assume(Evict("default", "running", uid, "default/g", "preempt"))


def _handler_failed(w: Watched) -> None:
    w.model.remove("Pod", "default", "running")


def _late_put(w: Watched) -> None:
    gone = msgspec.convert(pod("gone", "n2", uid="gone"), type=type(w.model.tasks["default/running"].pod))
    w.model.upsert("Pod", gone)


def _other_content(w: Watched) -> None:
    w.cache.informers["Node"].store["n2"].metadata.labels["zone"] = "c"


def _other_in_model(w: Watched) -> None:
    known = w.cache.informers["Node"].store["n2"]
    other = msgspec.convert(node("n2", "99", zone="b"), type=type(known))
    other.metadata = msgspec.structs.replace(known.metadata)
    w.model.upsert("Node", other)


WAYS = (
    Way("pod ADDED lost", lambda w: w.change_silently("Pod", pod("new", "n2")), "Pod", "missing"),
    Way("pod DELETED lost", lambda w: w.delete_silently("Pod", "running"), "Pod", "deleted"),
    Way("pod MODIFIED lost", lambda w: w.change_silently("Pod", pod("waiting", "n2")), "Pod", "stale", "spec.nodeName"),
    Way(
        "pod replaced under its name",
        lambda w: w.change_silently("Pod", pod("running", "n2", uid="another")),
        "Pod",
        "stale",
        "metadata.uid",
    ),
    Way("node ADDED lost", lambda w: w.change_silently("Node", node("n3")), "Node", "missing"),
    Way("node DELETED lost", lambda w: w.delete_silently("Node", "n2", ""), "Node", "deleted"),
    Way(
        "node allocatable stale",
        lambda w: w.change_silently("Node", node("n1", "2", zone="a")),
        "Node",
        "stale",
        "status.allocatable.cpu",
    ),
    Way(
        "node label stale",
        lambda w: w.change_silently("Node", node("n1", zone="x")),
        "Node",
        "stale",
        "metadata.labels.zone",
    ),
    Way(
        "queue MODIFIED lost", lambda w: w.change_silently("Queue", queue("2")), "Queue", "stale", "spec.capability.cpu"
    ),
    Way(
        "PodGroup MODIFIED lost",
        lambda w: w.change_silently("PodGroup", group(2)),
        "PodGroup",
        "stale",
        "spec.minMember",
    ),
    Way("PodGroup DELETED lost", lambda w: w.delete_silently("PodGroup", "g"), "PodGroup", "deleted"),
    Way(
        "PriorityClass MODIFIED lost",
        lambda w: w.change_silently("PriorityClass", {"metadata": {"name": "high"}, "value": 7}),
        "PriorityClass",
        "stale",
        "value",
    ),
    Way(
        "PodDisruptionBudget MODIFIED lost",
        lambda w: w.change_silently("PodDisruptionBudget", budget(2)),
        "PodDisruptionBudget",
        "stale",
        "spec.minAvailable",
    ),
    Way(
        "claim MODIFIED lost",
        lambda w: w.change_silently("PersistentVolumeClaim", claim("v")),
        "PersistentVolumeClaim",
        "stale",
        "spec.volumeName",
    ),
    Way("node usage column wrong", _usage, "Node", "sum", "used"),
    Way("node allocatable column wrong", _allocatable, "Node", "sum", "allocatable"),
    Way("job count wrong", _counts, "PodGroup", "sum", "counts"),
    Way("bind assumed that nothing writes", _assumed, "Pod", "assumed", "bind"),
    Way("eviction assumed that nothing writes", _evicted, "Pod", "assumed", "eviction"),
    Way("pod not in the model: a handler failed", _handler_failed, "Pod", "model"),
    Way("pod in the model only: put after its deletion", _late_put, "Pod", "model"),
    Way("node of another content in the model", _other_in_model, "Node", "model", "status.allocatable.cpu"),
    Way("object changed in the store", _other_content, "Node", "content", "metadata.labels.zone"),
)


async def measure(way: Way, found: Callable[[Way, float, Drift], Awaitable[None] | None]) -> None:
    """Inject a drift at a random moment of a round, and wait until everything is correct."""
    async with watched() as w:
        await asyncio.sleep(PERIOD * (hash(way.name) % 100) / 100)
        begun = time.monotonic()
        way.inject(w)
        async with asyncio.timeout(120):
            while not (w.drifts and w.correct()):
                await asyncio.sleep(0.05)
        found(way, time.monotonic() - begun, w.drifts[0])


async def main() -> None:
    print(f"{'drift':48} {'found as':30} {'field':28} correct after")
    slowest = 0.0

    def report(way: Way, seconds: float, drift: Drift) -> None:
        nonlocal slowest
        slowest = max(slowest, seconds)
        print(f"{way.name:48} {drift.kind:21} {drift.form:8} {drift.field:28} {seconds:5.1f} s", flush=True)

    await asyncio.gather(*(measure(way, report) for way in WAYS))
    print(f"{len(WAYS)} ways; the slowest took {slowest:.1f} s")


if __name__ == "__main__":
    asyncio.run(main())
