"""Conversion between plain manifests (dicts), JSON bytes and structs.

`msgspec.convert` cannot fill raw fields, so plain dicts go through JSON text.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar

import msgspec
import orjson

T = TypeVar("T")


@cache
def _decoder(type_: Any) -> Any:
    return msgspec.json.Decoder(type_)


def decoder(type_: type[T]) -> msgspec.json.Decoder[T]:
    """The (shared) JSON decoder of a struct."""
    found: msgspec.json.Decoder[T] = _decoder(type_)  # type: ignore[arg-type]
    return found


def from_manifest(type_: type[T], manifest: Any) -> T:
    """A plain JSON value as a struct. Raises msgspec.ValidationError with the invalid field."""
    return decoder(type_).decode(orjson.dumps(manifest))


def to_manifest(struct: msgspec.Struct) -> dict[str, Any]:
    """A struct as a plain JSON value, without fields that have their default."""
    manifest: dict[str, Any] = orjson.loads(msgspec.json.encode(struct))
    return manifest
