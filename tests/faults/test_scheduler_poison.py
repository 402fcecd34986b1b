"""Objects that cannot be decoded, of every watched kind: each is reported once, and everything else is scheduled."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.faults.poison import DEPTHS, deep, wrong_types
from tests.faults.samples import sample
from tests.faults.scheduling import Cluster, cluster, pod, pod_group, running, until
from volcano_py.api import kinds
from volcano_py.api.kinds import COMPOSITE_PODGROUP, NODE, POD, PODGROUP, ResourceType
from volcano_py.kube import Client
from volcano_py.scheduler.cache.cache import Cache
from volcano_py.scheduler.cache.filters import ObjectFilters
from volcano_py.scheduler.cache.kinds import Watched, watched
from volcano_py.scheduler.model.cluster import Cluster as Model
from volcano_py.scheduler.model.feature_gates import DEFAULT_GATES
from volcano_py.scheduler.model.plan import Event

Key = tuple[str, str]
KINDS = [kind for kind in watched(DEFAULT_GATES) if kind.rt != COMPOSITE_PODGROUP]
"""All but the kind that only Kubernetes 1.37 serves: the cluster of these tests is 1.36."""
GONE = b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}'


def own(kind: Watched, name: str) -> str:
    """A name that no object of another kind with the same name has."""
    return f"native-{name}" if kind.name else name


def named(rt: ResourceType, name: str) -> dict[str, Any]:
    """A manifest of any kind."""
    metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": "1"}
    if rt.namespaced:
        metadata["namespace"] = "default"
    return {"apiVersion": rt.api_version, "kind": rt.kind, "metadata": metadata}


def wrong(kind: Watched) -> dict[str, bytes]:
    """Every field that is decoded, with a value of every wrong type: names and bodies."""
    rt = kind.rt
    full = sample(kinds.STRUCTS[rt])
    plain = named(rt, "x")
    full |= {"apiVersion": rt.api_version, "kind": rt.kind}
    full["metadata"] |= plain["metadata"]
    bodies = {}
    for i, (_, body) in enumerate(wrong_types(full)):
        name = own(kind, f"odd-{i}")
        bodies[name] = body.replace(b'"name": "x"', f'"name": "{name}"'.encode(), 1).replace(
            b"uid-x", b"uid-" + name.encode()
        )
    return bodies


def decodes(rt: ResourceType, body: bytes) -> bool:
    try:
        msgspec.json.decode(body, type=kinds.STRUCTS[rt])
    except (msgspec.ValidationError, RecursionError):
        return False
    return True


@contextlib.asynccontextmanager
async def cache_of(c: Cluster, reported: Counter[Key]) -> AsyncIterator[Cache]:
    """The informers of a scheduler, its model and its quarantine."""

    def report(event: Event) -> bool:
        reported[event.kind, event.name] += 1
        return True

    options = c.options()
    async with Client.from_kubeconfig(options.kubeconfig) as client:
        model = Model(shadow_schedulers=frozenset({"volcano"}))
        cache = Cache(model, ObjectFilters(["volcano"]), report, lambda: None, lambda *deleted: None)
        cache.start(client)
        task = asyncio.create_task(cache.run())
        try:
            await until(cache.ready.is_set, "the first lists are not complete")
            yield cache
        finally:
            assert not task.done(), task
            task.cancel()
            await asyncio.wait([task])


async def all_watched(c: Cluster) -> None:
    """Wait until a watch of every kind is open: an empty line is no event."""
    await until(lambda: all(c.proxy.send(kind.plural, b"") for kind in KINDS), "not every kind is watched")


async def good_ones_arrive(c: Cluster, cache: Cache, name: str) -> None:
    await c.client.create(POD, pod(f"{name}-0", name))
    await until(lambda: f"default/{name}-0" in cache.informers["Pod"].store, "the watch of pods does not go on")


@pytest.mark.parametrize("through", ["list", "watch"])
async def test_each_field_with_each_wrong_type_is_reported_once(tmp_path: Path, through: str) -> None:
    bad: set[Key] = set()
    reported: Counter[Key] = Counter()
    async with cluster(tmp_path) as c, contextlib.AsyncExitStack() as stack:
        await c.client.create(PODGROUP, pod_group("g", 1))
        await c.client.create(POD, pod("g-0", "g"))
        cache = await stack.enter_async_context(cache_of(c, reported)) if through == "watch" else None
        if cache is not None:
            await all_watched(c)
        for kind in KINDS:
            for name, body in wrong(kind).items():
                if not decodes(kind.rt, body):
                    bad.add((kind.kind, name))
                c.proxy.add(kind.plural, body)
        if cache is None:
            cache = await stack.enter_async_context(cache_of(c, reported))
        await until(lambda: bad <= set(reported), "not every object is reported")
        await good_ones_arrive(c, cache, "later")
        assert len(bad) > 3000
        assert {key: count for key, count in reported.items() if count != 1} == {}
        assert len(cache.informers["Node"].store) >= 2 and "default/g-0" in cache.informers["Pod"].store


@pytest.mark.parametrize("through", [pytest.param("list", marks=pytest.mark.slow), "watch"])
async def test_objects_of_any_depth_stop_nothing(tmp_path: Path, through: str) -> None:
    bad: set[Key] = set()
    reported: Counter[Key] = Counter()
    async with cluster(tmp_path) as c, contextlib.AsyncExitStack() as stack:
        cache = await stack.enter_async_context(cache_of(c, reported)) if through == "watch" else None
        if cache is not None:
            await all_watched(c)
        for kind in KINDS:
            for depth in DEPTHS:
                for path in ((), ("spec",)):
                    manifest = named(kind.rt, own(kind, f"deep-{depth}-{''.join(path)}".rstrip("-")))
                    body = deep(manifest, depth, *path)
                    if not decodes(kind.rt, body):
                        bad.add((kind.kind, manifest["metadata"]["name"]))
                    c.proxy.add(kind.plural, body)
        if cache is None:
            cache = await stack.enter_async_context(cache_of(c, reported))
        await until(lambda: bad <= set(reported), "not every object is reported")
        await good_ones_arrive(c, cache, "later")
        assert {kind for kind, _ in bad} == {kind.kind for kind in KINDS}
        assert {key: count for key, count in reported.items() if count != 1} == {}


async def test_an_undecodable_object_is_forgotten_when_it_is_gone(tmp_path: Path) -> None:
    reported: Counter[Key] = Counter()
    async with cluster(tmp_path) as c, cache_of(c, reported) as cache:
        quarantine = cache.quarantine
        await all_watched(c)
        for name in ("deleted", "vanished"):
            c.proxy.add("nodes", deep(named(NODE, name), 1_100))
        await until(lambda: quarantine.counts() == {"Node": 2}, "they are not quarantined")
        c.proxy.send("nodes", b'{"type":"DELETED","object":' + deep(named(NODE, "deleted"), 1_100) + b"}")
        await until(lambda: quarantine.counts() == {"Node": 1}, "the deleted one is kept")
        c.proxy.withdraw("nodes")
        c.proxy.send("nodes", GONE)
        await until(lambda: quarantine.counts() == {}, "the one that vanished is kept")


@pytest.mark.parametrize("when", [pytest.param("before the start", marks=pytest.mark.slow), "while running"])
async def test_gangs_are_scheduled_beside_poison_of_every_kind(tmp_path: Path, when: str) -> None:
    async with cluster(tmp_path) as c:
        bad: set[Key] = set()

        def poison() -> None:
            for kind in KINDS:
                for depth in (1_100, 10_000):
                    manifest = named(kind.rt, own(kind, f"deep-{depth}"))
                    c.proxy.add(kind.plural, deep(manifest, depth))
                    bad.add((kind.rt.kind, manifest["metadata"]["name"]))
                manifest = named(kind.rt, own(kind, "text"))
                manifest["metadata"]["labels"] = 7
                c.proxy.add(kind.plural, json.dumps(manifest).encode())
                bad.add((kind.rt.kind, manifest["metadata"]["name"]))

        if when == "before the start":
            poison()
        async with running(c.options()) as scheduler:
            await c.submit("early")
            await c.scheduled("early")
            if when == "while running":
                poison()
            await c.submit("late")
            await c.scheduled("late")

            async def all_reported() -> bool:
                return {(kind, name) for kind, name, _ in await c.quarantine_events()} >= bad

            await until(all_reported, "not every object has an Event", 30)
            # The same again, from new lists: they are known.
            for kind in KINDS:
                c.proxy.send(kind.plural, GONE)
            await c.submit("last")
            await c.scheduled("last")
            events = await c.quarantine_events()
            assert len(events) == len(bad) and {count for _, _, count in events} == {1}
            assert scheduler.health.answer() == (True, "ok")
