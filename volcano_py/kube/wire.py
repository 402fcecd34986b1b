"""Encoding and decoding of objects: requests (dict or Struct) and responses (dict, Struct, list page).

Decoding to a Struct that declares only the needed fields takes 6 us per pod, so hot paths do that;
a dict (`type=None`) is for callers that must keep unknown fields.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec
import orjson

from volcano_py.kube import scan
from volcano_py.kube.errors import UNDECODABLE, InvalidResponse

if TYPE_CHECKING:
    from volcano_py.api.resource_types import ResourceType

T = TypeVar("T")


class Items(list[T]):
    """The objects of one list response, and where to continue."""

    def __init__(
        self,
        items: Iterable[T] = (),
        resource_version: str = "",
        continue_token: str = "",
        remaining: int = 0,
    ) -> None:
        super().__init__(items)
        self.resource_version = resource_version
        """resourceVersion of the list: start a watch from here."""
        self.continue_token = continue_token
        """Empty on the last page."""
        self.remaining = remaining
        """The number of remaining objects; 0 if the server does not report it."""

    @property
    def items(self) -> Items[T]:
        """The list itself, as the field of a List object."""
        return self


class Undecodable(msgspec.Struct):
    """An object that could not be decoded: its identity, its bytes and the reason."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    raw: bytes
    error: str


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str | None = None
    continue_: str | None = msgspec.field(default=None, name="continue")
    remaining_item_count: int | None = None


class _List(msgspec.Struct, Generic[T]):
    metadata: _ListMeta | None = None
    items: list[T] | None = None


class _ListHead(msgspec.Struct):
    metadata: _ListMeta | None = None


_head = msgspec.json.Decoder(_ListHead)
_raw_list = msgspec.json.Decoder(_List[msgspec.Raw])


@lru_cache(maxsize=256)
def decoder(type_: Any) -> Any:
    """The cached decoder from JSON bytes to `type_` (None: dict)."""
    return msgspec.json.Decoder(dict if type_ is None else type_)


@lru_cache(maxsize=256)
def _list_decoder(type_: Any) -> Any:
    return msgspec.json.Decoder(_List[dict if type_ is None else type_])  # type: ignore[misc]


def decode(body: bytes, type_: Any) -> Any:
    """One object. Raises InvalidResponse if the body is not a JSON object or does not match `type_`."""
    return _decoded(decoder(type_), body)


def continue_token(body: bytes) -> str:
    """The continue token of a page; empty on the last one. Raises InvalidResponse."""
    try:
        page = _head.decode(body)
    except RecursionError:
        return scan.texts(body, "metadata").get("continue", "")
    except UNDECODABLE as error:
        raise _invalid(body, error) from None
    return (page.metadata and page.metadata.continue_) or ""


def decode_list(body: bytes, type_: Any) -> Items[Any]:
    """A list response. Raises InvalidResponse if it is not a list or an object in it does not match `type_`."""
    return _items(_decoded(_list_decoder(type_), body))


def decode_list_lenient(body: bytes, type_: Any) -> tuple[Items[Any], list[Undecodable]]:
    """A list response; objects that do not match are returned separately.

    Raises InvalidResponse for anything except a list with a resourceVersion, from which a watch could start.
    """
    page = _if_all_fit(body, type_)
    return (page, []) if page is not None else _object_by_object(body, type_)


async def read_list_lenient(body: bytes, type_: Any) -> tuple[Items[Any], list[Undecodable]]:
    """The same for an event loop: decodes objects one by one in a thread, because a list with hundreds of deeply nested
    objects takes seconds, in which a Lease could not be renewed."""
    page = _if_all_fit(body, type_)
    return (page, []) if page is not None else await asyncio.to_thread(_object_by_object, body, type_)


def _if_all_fit(body: bytes, type_: Any) -> Items[Any] | None:
    try:
        return _versioned(body, _items(_list_decoder(type_).decode(body)))
    except UNDECODABLE:
        return None


def _object_by_object(body: bytes, type_: Any) -> tuple[Items[Any], list[Undecodable]]:
    page = _versioned(body, _raw_items(body))
    one = decoder(type_)
    good: list[Any] = []
    failed: list[Undecodable] = []
    for raw in page:
        try:
            good.append(one.decode(raw))
        except UNDECODABLE as error:
            failed.append(undecodable(bytes(raw), error))
    page[:] = good
    return page, failed


def _raw_items(body: bytes) -> Items[Any]:
    try:
        return _items(_raw_list.decode(body))
    except RecursionError as error:
        if not scan.complete(body):
            raise _invalid(body, error) from None
        head = scan.texts(body, "metadata")
        items = scan.elements(scan.member(body, "items"))
        return Items(items, head.get("resourceVersion", ""), head.get("continue", ""))
    except UNDECODABLE as error:
        raise _invalid(body, error) from None


def _versioned(body: bytes, page: Items[Any]) -> Items[Any]:
    if not page.resource_version:
        raise _invalid(body, "not a list: metadata.resourceVersion is missing")
    return page


def _decoded(decoder: Any, body: bytes) -> Any:
    try:
        return decoder.decode(body)
    except UNDECODABLE as error:
        raise _invalid(body, error) from None


def _invalid(body: bytes, why: object) -> InvalidResponse:
    shown = body[:80].decode("utf-8", "replace").strip()
    return InvalidResponse(f"the server's response is invalid: {why}; it starts with {shown!r}", body)


def undecodable(raw: bytes, error: Exception) -> Undecodable:
    """The identity of an undecodable object, as far as its metadata can be read."""
    meta = scan.texts(raw, "metadata")
    why = "nested too deep" if isinstance(error, RecursionError) else str(error)
    return Undecodable(
        meta.get("namespace", ""), meta.get("name", ""), meta.get("uid", ""), meta.get("resourceVersion", ""), raw, why
    )


def encode(rt: ResourceType, obj: Any) -> bytes:
    """JSON of an object; missing apiVersion and kind are set from `rt`."""
    if isinstance(obj, bytes):
        return obj
    if isinstance(obj, msgspec.Struct):
        fields = type(obj).__struct_encode_fields__
        if "kind" in fields and getattr(obj, "kind", None) and getattr(obj, "api_version", None):
            return msgspec.json.encode(obj)
        if "kind" not in fields and type(obj).__struct_config__.tag is None:
            body = msgspec.json.encode(obj)
            head = orjson.dumps({"apiVersion": rt.api_version, "kind": rt.kind})
            return head if body == b"{}" else head[:-1] + b"," + body[1:]
        obj = orjson.loads(msgspec.json.encode(obj))
    if not obj.get("kind") or not obj.get("apiVersion"):
        obj = {
            **obj,
            "apiVersion": obj.get("apiVersion") or rt.api_version,
            "kind": obj.get("kind") or rt.kind,
        }
    return dumps(obj)


def dumps(obj: Any) -> bytes:
    """JSON bytes of dicts and lists that may contain Structs."""
    return obj if isinstance(obj, bytes) else orjson.dumps(obj, default=_fragment)


def _fragment(part: Any) -> orjson.Fragment:
    return orjson.Fragment(msgspec.json.encode(part))


def identity(obj: Any) -> tuple[str, str]:
    """(namespace, name) of a dict or a Struct; empty strings if missing."""
    if isinstance(obj, dict):
        meta = obj.get("metadata") or {}
        return meta.get("namespace") or "", meta.get("name") or ""
    meta = obj.metadata
    return getattr(meta, "namespace", None) or "", meta.name or ""


def version(obj: Any) -> str:
    """resourceVersion of a dict or a Struct; empty when unknown."""
    if isinstance(obj, dict):
        return (obj.get("metadata") or {}).get("resourceVersion") or ""
    return obj.metadata.resource_version or ""


def _items(page: Any) -> Items[Any]:
    meta = page.metadata or _ListMeta()
    return Items(page.items or (), meta.resource_version or "", meta.continue_ or "", meta.remaining_item_count or 0)
