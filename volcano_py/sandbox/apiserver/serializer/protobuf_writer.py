"""Encodes Kubernetes protobuf, for clients that accept nothing else; `protobuf.py` decodes it."""

from __future__ import annotations

import base64
import struct
from datetime import datetime
from typing import Any

import orjson

from volcano_py.sandbox.apiserver.schema.types import Type, builtin
from volcano_py.sandbox.apiserver.serializer.protobuf import MAGIC, go_name

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"


def envelope(obj: dict[str, Any]) -> bytes:
    """A built-in object in its `runtime.Unknown`."""
    api_version, kind = obj["apiVersion"], obj["kind"]
    meta = chunk(1, api_version.encode()) + chunk(2, kind.encode())
    return MAGIC + chunk(1, meta) + chunk(2, encode(builtin(go_name(api_version, kind)), obj))


def varint(value: int) -> bytes:
    """A number, low bits first; negative ones in ten bytes."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(at: int, value: int) -> bytes:
    """A numeric field."""
    return varint(at << 3) + varint(value)


def chunk(at: int, data: bytes) -> bytes:
    """A field of bytes: a string or a message."""
    return varint(at << 3 | 2) + varint(len(data)) + data


def encode(type_: Type, obj: dict[str, Any]) -> bytes:
    """A message from its JSON object."""
    out = b""
    for field in type_.parts:
        shape = field.type
        if field.inline:
            out += chunk(field.number, encode(shape, obj))
            continue
        value = obj.get(field.name)
        if value is None:
            continue
        if shape.kind == "list" and shape.elem is not None:
            out += b"".join(_field(shape.elem, field.number, item) for item in value)
        elif shape.kind == "map" and shape.elem is not None:
            for key, item in value.items():
                out += chunk(field.number, chunk(1, key.encode()) + _field(shape.elem, 2, item))
        else:
            out += _field(shape, field.number, value)
    return out


def _field(type_: Type, at: int, value: Any) -> bytes:
    kind = type_.kind
    if kind in ("int32", "int64", "bool"):
        return number(at, int(value))
    if kind == "double":
        return varint(at << 3 | 1) + struct.pack("<d", value)
    return chunk(at, _payload(type_, value))


def _payload(type_: Type, value: Any) -> bytes:
    kind = type_.kind
    if kind == "struct":
        return encode(type_, value)
    if kind == "bytes":
        return base64.b64decode(value)
    if kind in ("time", "microtime"):
        moment = datetime.fromisoformat(value)
        return number(1, int(moment.timestamp())) + number(2, moment.microsecond * 1000)
    if kind == "quantity":
        return chunk(1, str(value).encode())
    if kind == "intstr":
        return number(1, 1) + chunk(3, value.encode()) if isinstance(value, str) else number(1, 0) + number(2, value)
    if kind == "duration":
        return number(1, round(float(value.removesuffix("s")) * 1e9))
    if kind in ("raw", "any"):
        return chunk(1, orjson.dumps(value))
    if kind == "list" and type_.elem is not None:  # a named list type: a message with repeated items
        return b"".join(_field(type_.elem, 1, item) for item in value)
    return str(value).encode()
