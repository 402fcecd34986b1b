"""Every kind as the informers decode it, in a model of the scheduler, and in a watch."""

from __future__ import annotations

from functools import cache
from typing import Any

import orjson

from tests.fuzz.target import Target
from tests.fuzz.targets.samples import sample
from tests.fuzz.targets.seeds import objects
from volcano_py.api.kinds import STRUCTS, ResourceType
from volcano_py.kube import wire
from volcano_py.kube.errors import ApiError, InvalidResponse
from volcano_py.kube.watch import StreamBroken, WatchEvent, decode_event
from volcano_py.scheduler.cache.filters import ObjectFilters
from volcano_py.scheduler.cache.kinds import TABLE
from volcano_py.scheduler.model.cluster import Cluster


def seeds_of(rt: ResourceType) -> list[bytes]:
    """Objects of a kind: those of the examples, one with all fields, one with none."""
    full: dict[str, Any] = sample(STRUCTS[rt])
    full |= {"apiVersion": rt.api_version, "kind": rt.kind}
    found = [orjson.dumps(one) for one in (*objects(rt.api_version, rt.kind), full)]
    return [one for one in found if _decodes(one, rt)] or found[-1:]


def _decodes(body: bytes, rt: ResourceType) -> bool:
    try:
        wire.decode(body, STRUCTS[rt])
    except InvalidResponse:
        return False
    return True


def _decode(rt: ResourceType, data: bytes) -> None:
    """One object, and a list in which it is between two valid ones."""
    wire.decode(data, STRUCTS[rt])
    page = b'{"metadata":{"resourceVersion":"1"},"items":[' + data + b"]}"
    good, failed = wire.decode_list_lenient(page, STRUCTS[rt])
    assert len(good) == 1 and not failed


def _list(data: bytes) -> None:
    wire.decode_list_lenient(data, STRUCTS[_POD])


def _watch(data: bytes) -> None:
    event = decode_event(data, STRUCTS[_POD])
    assert isinstance(event, WatchEvent)


_POD = next(rt for rt in STRUCTS if rt.plural == "pods" and not rt.group)


@cache
def _model() -> tuple[Cluster, ObjectFilters]:
    return Cluster(shadow_schedulers=frozenset({"volcano"})), ObjectFilters(frozenset({"volcano"}))


def _upsert(data: bytes) -> None:
    """A decoded object in the model, and out of it again."""
    kind, _, body = data.partition(b"\n")
    row = next((row for row in TABLE if row.kind.encode() == kind), TABLE[-1])
    obj = wire.decode(body, STRUCTS[row.rt])
    model, filters = _model()
    if not filters.accepts(row.kind, obj):
        return
    meta = obj.metadata
    try:
        model.upsert(row.kind, obj)
    finally:
        model.remove(row.kind, meta.namespace or "", meta.name or "")


def targets() -> list[Target]:
    """One for each kind, the list, the watch, and one for each kind in the model."""
    found = [
        Target(
            f"decode {rt.kind.lower()}.{rt.group or 'core'}",
            lambda data, rt=rt: _decode(rt, data),  # type: ignore[misc]
            (InvalidResponse,),
            seeds_of(rt),
        )
        for rt in STRUCTS
    ]
    pods = seeds_of(_POD)
    page = b'{"metadata":{"resourceVersion":"1","continue":"x"},"items":[' + b",".join(pods) + b"]}"
    events = [b'{"type":"ADDED","object":' + pod + b"}" for pod in pods]
    events.append(b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"m"}}')
    found.append(Target("list of pods", _list, (InvalidResponse,), [page]))
    found.append(Target("watch event", _watch, (ApiError, StreamBroken), events))
    for row in TABLE:
        found.append(
            Target(
                f"model {row.kind}",
                lambda data, row=row: _upsert(row.kind.encode() + b"\n" + data),  # type: ignore[misc]
                (InvalidResponse, ValueError),
                seeds_of(row.rt),
            )
        )
    return found
