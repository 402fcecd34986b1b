"""Kubernetes protobuf: the envelope and, with the field numbers of `types.py`, every built-in message.

kubectl's typed generators (create namespace, secret, deployment, …), drain and Helm send protobuf bodies and do not
retry after a 415. Responses are JSON unless a client accepts only protobuf.
"""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any

from volcano_py.sandbox.apiserver.schema.types import Type, builtin, known

MAGIC = b"k8s\x00"

_GROUPS = {
    "": "core",
    "rbac.authorization.k8s.io": "rbac",
    "scheduling.k8s.io": "scheduling",
    "coordination.k8s.io": "coordination",
    "events.k8s.io": "events",
    "storage.k8s.io": "storage",
    "networking.k8s.io": "networking",
    "node.k8s.io": "node",
    "authentication.k8s.io": "authentication",
    "authorization.k8s.io": "authorization",
    "admissionregistration.k8s.io": "admissionregistration",
    "apiextensions.k8s.io": "apiextensions",
    "discovery.k8s.io": "discovery",
    "certificates.k8s.io": "certificates",
    "resource.k8s.io": "resource",
    "flowcontrol.apiserver.k8s.io": "flowcontrol",
    "apiregistration.k8s.io": "apiregistration",
    "meta.k8s.io": "meta",
}


class ProtobufError(ValueError):
    """The bytes are not a Kubernetes protobuf message, or of an unknown kind."""


def go_name(api_version: str, kind: str) -> str:
    """`apps/v1`, `Deployment` to `apps.v1.Deployment`; the options kinds are in meta for every group."""
    group, _, version = api_version.rpartition("/")
    if kind in ("DeleteOptions", "Status", "WatchEvent"):
        return f"meta.v1.{kind}"
    return f"{_GROUPS.get(group, group)}.{version}.{kind}"


def decode_envelope(body: bytes) -> dict[str, Any]:
    """The object in a `runtime.Unknown` envelope, as its JSON form."""
    if not body.startswith(MAGIC):
        raise ProtobufError("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    parts = dict(_fields(body[4:]))
    meta = {number: value.decode() for number, value in _fields(parts.get(1, b""))}
    api_version, kind = meta.get(1, ""), meta.get(2, "")
    name = go_name(api_version, kind)
    if not known(name):
        raise ProtobufError(f'no kind "{kind}" is registered for version "{api_version}"')
    return {"kind": kind, "apiVersion": api_version, **decode(builtin(name), parts.get(2, b""))}


def _varint(data: bytes, at: int) -> tuple[int, int]:
    shift = value = 0
    while True:
        try:
            byte = data[at]
        except IndexError:
            raise ProtobufError("unexpected EOF") from None
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ProtobufError("proto: integer overflow")


def _fields(data: bytes) -> list[tuple[int, Any]]:
    out: list[tuple[int, Any]] = []
    at, end = 0, len(data)
    while at < end:
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        value: Any
        if wire == 0:
            value, at = _varint(data, at)
        elif wire == 2:
            size, at = _varint(data, at)
            if at + size > end:
                raise ProtobufError("unexpected EOF")
            value = data[at : at + size]
            at += size
        elif wire == 1:
            value = data[at : at + 8]
            at += 8
        elif wire == 5:
            value = data[at : at + 4]
            at += 4
        else:
            raise ProtobufError(f"proto: illegal wireType {wire}")
        out.append((number, value))
    return out


def _signed(value: Any) -> int:
    if not isinstance(value, int):
        raise ProtobufError("proto: wrong wireType for an integer")
    return value - (1 << 64) if value >= 1 << 63 else value


def decode(type_: Type, data: bytes) -> dict[str, Any]:
    """A message as its JSON object."""
    by_number = {field.number: field for field in type_.parts}
    out: dict[str, Any] = {}
    for number, raw in _fields(data):
        field = by_number.get(number)
        if field is None:
            continue
        shape = field.type
        if field.inline:
            out.update(decode(shape, raw))
        elif shape.kind == "list" and shape.elem is not None:
            out.setdefault(field.name, []).append(_value(shape.elem, raw))
        elif shape.kind == "map" and shape.elem is not None:
            pair = dict(_fields(raw))
            value = _value(shape.elem, pair[2]) if 2 in pair else _empty(shape.elem)
            out.setdefault(field.name, {})[pair.get(1, b"").decode()] = value
        else:
            out[field.name] = _value(shape, raw)
    return out


def _empty(type_: Type) -> Any:
    return {"string": "", "bytes": "", "quantity": "0", "bool": False}.get(
        type_.kind, {} if type_.kind == "struct" else 0
    )


def _value(type_: Type, raw: Any) -> Any:
    kind = type_.kind
    try:
        if kind == "string":
            return raw.decode()
        if kind in ("int32", "int64"):
            return _signed(raw)
        if kind == "bool":
            return bool(raw)
        if kind == "struct":
            return decode(type_, raw)
        if kind == "bytes":
            return base64.b64encode(raw).decode()
        if kind in ("time", "microtime"):
            return _time(raw, kind)
        if kind == "quantity":
            return dict(_fields(raw)).get(1, b"0").decode()
        if kind == "intstr":
            parts = dict(_fields(raw))
            return parts.get(3, b"").decode() if parts.get(1) else _signed(parts.get(2, 0))
        if kind == "duration":
            return f"{_signed(dict(_fields(raw)).get(1, 0)) / 1e9:g}s"
        if kind in ("raw", "any"):
            import orjson

            inner = dict(_fields(raw)).get(1, b"null")
            return orjson.loads(inner)
        if kind == "double":
            import struct

            return struct.unpack("<d", raw)[0]
        if kind == "list" and type_.elem is not None:  # a named list type: a message with repeated items
            return [_value(type_.elem, item) for _, item in _fields(raw)]
    except (AttributeError, UnicodeDecodeError, ValueError, TypeError) as error:
        raise ProtobufError(f"proto: cannot decode {type_.go_name or kind}: {error}") from None
    raise ProtobufError(f"proto: cannot decode {kind}")


def _time(raw: bytes, kind: str) -> str | None:
    parts = dict(_fields(raw))
    if not parts:
        return None
    moment = datetime.fromtimestamp(_signed(parts.get(1, 0)), UTC)
    if kind == "microtime":
        return moment.replace(microsecond=_signed(parts.get(2, 0)) // 1000).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
