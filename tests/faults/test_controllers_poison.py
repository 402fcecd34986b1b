"""Objects that cannot be decoded, of every kind that the controllers watch, by informers and by kopf.

Each is logged once; all work on other objects is done.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from itertools import groupby
from pathlib import Path

import msgspec
import pytest

from tests.faults.controlling import Cluster, ControllerWork, Manifest, WebhookWork, cluster, manifest, until
from tests.faults.poison import DEPTHS, deep, wrong_types
from tests.faults.samples import sample
from volcano_py.api import kinds
from volcano_py.api.batch import Job
from volcano_py.api.codec import from_manifest
from volcano_py.api.core import Pod
from volcano_py.api.kinds import ResourceType
from volcano_py.controllers import kopf_thread, kopf_watch
from volcano_py.controllers.executor import Executor
from volcano_py.controllers.job.kill import end_pods
from volcano_py.kube import wire
from volcano_py.kube.errors import InvalidResponse
from volcano_py.webhooks import manager as webhooks

BY_INFORMERS = (
    kinds.JOB,
    kinds.POD,
    kinds.PODGROUP,
    kinds.QUEUE,
    kinds.PRIORITYCLASS,
    kinds.PERSISTENTVOLUMECLAIM,
    kinds.REPLICASET,
    kinds.STATEFULSET,
    kinds.HYPERNODE,
    kinds.NODE,
    kinds.CONFIGMAP,
    kinds.COMMAND,
)
KINDS = (*BY_INFORMERS, *kopf_watch.KINDS)
GONE = b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}'
LINE = re.compile(r"^(\w+) (\S+) cannot be used and is ignored")
LEASE = {"leader_elect_lease_duration": 30.0, "leader_elect_renew_deadline": 20.0}
"""Thousands of undecodable objects in one page hold the event loop for a second."""
Key = tuple[str, str]


@cache
def bodies(rt: ResourceType) -> dict[str, bytes]:
    """Objects of a kind that do not decode, by key: every field with a wrong type, another from field to field, and too
    deep ones. tests/faults/test_scheduler_poison.py gives every field every wrong type; the informers are the same.
    """
    found: dict[str, bytes] = {}

    def add(name: str, body: bytes) -> None:
        try:
            msgspec.json.decode(body, type=kinds.STRUCTS[rt])
        except (msgspec.ValidationError, RecursionError):
            found[f"default/{name}" if rt.namespaced else name] = body

    full = sample(kinds.STRUCTS[rt]) | {"apiVersion": rt.api_version, "kind": rt.kind}
    plain = manifest(rt, "NAME", metadata={"uid": "uid-NAME", "resourceVersion": "1"})
    full["metadata"] |= {"namespace": ""} | plain["metadata"]
    for number, (_, group) in enumerate(groupby(wrong_types(full), key=lambda one: one[0])):
        variants = [body for _, body in group]
        body = variants[number % len(variants)]
        add(f"odd-{number}", body.replace(b"NAME", f"odd-{number}".encode()))
    for depth in DEPTHS:
        for place, path in (("managed", ()), ("spec", ("spec",)))[: 1 if depth == max(DEPTHS) else 2]:
            body = deep(plain, depth, *path).replace(b"NAME", f"deep-{depth}-{place}".encode())
            add(f"deep-{depth}-{place}", body)
    return found


def poison(c: Cluster, chosen: Iterable[ResourceType]) -> set[Key]:
    for rt in chosen:
        for body in bodies(rt).values():
            c.proxy.add(rt.plural, body)
    return {(rt.kind, key) for rt in chosen for key in bodies(rt)}


def logged(caplog: pytest.LogCaptureFixture) -> Counter[Key]:
    lines = (LINE.match(record.getMessage()) for record in caplog.records if record.levelno == logging.ERROR)
    return Counter((line[1], line[2]) for line in lines if line)


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before the start", "while running"])
@pytest.mark.parametrize("kopf", [True, False], ids=["kopf", "informers"])
async def test_all_other_objects_are_reconciled(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, when: str, kopf: bool
) -> None:
    monkeypatch.setattr(kopf_watch, "LIST_SECONDS", 3.0)
    monkeypatch.setattr(kopf_thread, "RECONNECT_SECONDS", 0.1)
    caplog.set_level(logging.ERROR)
    # Without kopf only the kinds that it watches are watched in another way.
    chosen = KINDS if kopf else kopf_watch.KINDS
    async with cluster(tmp_path) as c:
        bad = poison(c, chosen) if when == "before the start" else set()
        component = c.controller_manager(watch_with_kopf=kopf, kube_api_qps=1000.0, **LEASE)
        component.start()
        works = [ControllerWork(c.client, number) for number in range(3)]
        await works[0].submit()
        await until(works[0].done, lambda: works[0].missing, 60)
        await until(lambda: all(c.proxy.send(rt.plural, b"") for rt in KINDS), lambda: "not every kind is watched")
        if when == "while running":
            bad = poison(c, chosen)
        await works[1].submit()
        await until(works[1].done, lambda: works[1].missing, 60)
        await until(
            lambda: bad <= set(logged(caplog)), lambda: f"not logged: {sorted(bad - set(logged(caplog)))[:5]}", 30, 0.3
        )
        for rt in KINDS:
            c.proxy.send(rt.plural, GONE)  # from new lists: they are known
        await works[2].submit()
        await until(works[2].done, lambda: works[2].missing, 60)
        assert len(bad) > 60 * len(chosen) / 2 and {kind for kind, _ in bad} == {rt.kind for rt in chosen}
        assert {key: count for key, count in logged(caplog).items() if count != 1} == {}
        assert await component.healthy() == "ok" and not component.task.done()
        await component.stop()


class DeepAnswers:
    """A client whose writes are carried out, and answered with what it is given."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.writes: list[str] = []

    async def patch(self, rt: ResourceType, name: str, *rest: object, **options: object) -> Manifest:
        self.writes.append(f"patch {name}")
        return wire.decode(self.body, None)

    async def delete(self, rt: ResourceType, name: str, *rest: object, **options: object) -> Manifest:
        self.writes.append(f"delete {name}")
        return wire.decode(self.body, None)


async def test_a_pod_that_became_undecodable_can_still_be_ended() -> None:
    """Anyone who may patch a pod can make the answers to our writes undecodable, too; they have been carried out."""
    pod = manifest(kinds.POD, "p", metadata={"uid": "u"})
    known = from_manifest(Pod, pod)
    client = DeepAnswers(deep(pod, 5_000))
    executor = Executor(client)  # type: ignore[arg-type]
    await executor.carry_out(end_pods([known]), from_manifest(Job, manifest(kinds.JOB, "j")))
    assert client.writes == ["patch p", "delete p"]


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        deep(manifest(kinds.POD, "another"), 5_000),
        deep(manifest(kinds.POD, "p"), 5_000)[:-9],
    ],
    ids=["html", "another object", "cut off"],
)
async def test_an_answer_that_is_not_the_object_counts_as_a_failure(body: bytes) -> None:
    client = DeepAnswers(body)
    known = from_manifest(Pod, manifest(kinds.POD, "p"))
    with pytest.raises(InvalidResponse):
        await Executor(client).carry_out(  # type: ignore[arg-type]
            end_pods([known]), from_manifest(Job, manifest(kinds.JOB, "j"))
        )
    assert client.writes == ["patch p"]


@pytest.mark.slow
async def test_admission_goes_on_beside_undecodable_queues_and_namespaces(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhooks, "LOOK", 0.2)
    caplog.set_level(logging.ERROR)
    async with cluster(tmp_path) as c:
        component, port = c.webhook_manager()
        before = {f"deep-{depth}" for depth in DEPTHS}
        for rt in (kinds.QUEUE, kinds.NAMESPACE):
            for name in before:
                plain = manifest(rt, name, metadata={"uid": f"uid-{name}", "resourceVersion": "1"})
                c.proxy.add(rt.plural, deep(plain, int(name[5:])))
        component.start()
        for number in range(2):
            work = WebhookWork(c.client, number, port)
            await work.submit()
            await until(work.done, lambda: work.missing)  # noqa: B023
            for rt in (kinds.QUEUE, kinds.NAMESPACE):
                plain = manifest(rt, "late", metadata={"uid": "uid-late", "resourceVersion": "1"})
                c.proxy.add(rt.plural, deep(plain, 5_000))
        names = {f"deep-{depth}" for depth in DEPTHS if depth > 1_000} | {"late"}
        expected = {(rt.kind, name): 1 for rt in (kinds.QUEUE, kinds.NAMESPACE) for name in names}
        await until(lambda: logged(caplog) == expected, lambda: f"logged: {logged(caplog)}")
        assert await component.healthy() == "ok"
        await component.stop()
