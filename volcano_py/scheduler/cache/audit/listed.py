"""One page of a list of the API server against the store of an informer.

Most pages contain only metadata: names, UIDs and versions show what the cache lacks. One page in a round contains whole
objects, another one in each round, so that the contents are compared, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from volcano_py.kube import Informer, wire
from volcano_py.kube.errors import UNDECODABLE, InvalidResponse
from volcano_py.kube.informer import key_of
from volcano_py.scheduler.cache.audit.drift import Form

METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"


class _Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str | None = None
    uid: str = ""
    resource_version: str = ""


class _Item(msgspec.Struct):
    metadata: _Meta


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str | None = None
    continue_: str | None = msgspec.field(default=None, name="continue")


class _List(msgspec.Struct):
    metadata: _ListMeta
    items: list[_Item] | None = None


_decode = msgspec.json.Decoder(_List).decode


class Seen(NamedTuple):
    """An object of a page. `obj`: None if the page has its metadata only."""

    key: str
    uid: str
    version: str
    obj: Any = None


class Page(NamedTuple):
    """One page. `version`: of the list, which is the same for all its pages."""

    seen: list[Seen]
    version: str
    token: str


class Doubt(NamedTuple):
    """An object that may have drifted. `stored`: what the store had; `seen`: what the API server has."""

    key: str
    form: Form
    stored: Any
    seen: Seen | None


def metadata_of(body: bytes) -> Page:
    """A page of metadata, or of whole objects of which nothing else is read. Raises InvalidResponse."""
    try:
        found = _decode(body)
    except UNDECODABLE as error:
        raise InvalidResponse(f"a list cannot be read: {error}", body) from None
    seen = []
    for item in found.items or ():
        m = item.metadata
        seen.append(Seen(f"{m.namespace}/{m.name}" if m.namespace else m.name, m.uid, m.resource_version))
    return Page(seen, found.metadata.resource_version or "", found.metadata.continue_ or "")


def objects_of(body: bytes, informer: Informer[Any]) -> Page:
    """A page of whole objects, as the informer would store them. Raises InvalidResponse."""
    items, undecodable = wire.decode_list_lenient(body, informer.type)
    seen = [Seen(key_of(obj), obj.metadata.uid, wire.version(obj), informer.prepared(obj)) for obj in items]
    seen += [Seen(f"{o.namespace}/{o.name}".lstrip("/"), o.uid, o.resource_version) for o in undecodable]
    return Page(seen, items.resource_version, items.continue_token)


def compare(informer: Informer[Any], page: Page) -> Iterator[Doubt]:
    """The objects of a page that the store lacks, or has in another version or content."""
    for seen in page.seen:
        stored = informer.store.get(seen.key)
        if informer.has_reported(seen.key):
            continue  # it cannot be decoded: an older version stays in the store, if there was one
        if stored is None:
            yield Doubt(seen.key, "missing", None, seen)
        elif wire.version(stored) == seen.version:
            if seen.obj is not None and seen.obj != stored:
                yield Doubt(seen.key, "content", stored, seen)
        elif not newer(wire.version(stored), seen.version):
            yield Doubt(seen.key, "stale", stored, seen)


def absent(informer: Informer[Any], keys: set[str], version: str) -> Iterator[Doubt]:
    """The objects in the store that a complete list lacks, although they are not newer than it."""
    for key, stored in informer.store.items():
        if key not in keys and not newer(wire.version(stored), version):
            yield Doubt(key, "deleted", stored, None)


def is_over(informer: Informer[Any], doubt: Doubt) -> bool:
    """Whether an event has arrived that explains the doubt: it was in flight."""
    stored = informer.store.get(doubt.key)
    match doubt.form:
        case "missing":
            return stored is not None or informer.has_reported(doubt.key)
        case "stale":
            assert doubt.seen is not None
            return stored is None or not newer(doubt.seen.version, wire.version(stored))
        case _:
            return stored is not doubt.stored


def newer(version: str, other: str) -> bool:
    """Whether a resourceVersion is newer than another one; false if they cannot be compared."""
    return version.isdecimal() and other.isdecimal() and int(version) > int(other)
