"""OpenAPI v2 in protobuf, the only form that Go clients accept (the messages are those of openapi.v2.Document)."""

from __future__ import annotations

import struct
from typing import Any

import orjson

from volcano_py.sandbox.apiserver.serializer.protobuf_writer import chunk, number, varint

Object = dict[str, Any]

_METHODS = {"get": 2, "put": 3, "post": 4, "delete": 5, "options": 6, "head": 7, "patch": 8}
_PLACES = {"query": 3, "path": 4}
_SCHEMA_TEXTS = {"$ref": 1, "format": 2, "title": 3, "description": 4, "pattern": 13}
_SCHEMA_NUMBERS = {
    "maxLength": 11,
    "minLength": 12,
    "maxItems": 14,
    "minItems": 15,
    "uniqueItems": 16,
    "maxProperties": 17,
    "minProperties": 18,
}
_SCHEMA_BOUNDS = {"maximum": 7, "minimum": 9}


def encode(document: Object) -> bytes:
    """A Document; security definitions are left out, because clients do not use them."""
    info = _texts(document["info"], {"title": 1, "version": 2})
    paths = b"".join(_named(2, path, _path_item(item)) for path, item in document["paths"].items())
    return chunk(1, b"2.0") + chunk(2, info) + chunk(8, paths) + chunk(9, _schemas(document["definitions"]))


def _texts(given: Object, numbers: dict[str, int]) -> bytes:
    return b"".join(chunk(at, given[key].encode()) for key, at in numbers.items() if key in given)


def _named(at: int, name: str, message: bytes) -> bytes:
    """An entry of a map, which is a list of pairs here."""
    return chunk(at, chunk(1, name.encode()) + chunk(2, message))


def _any(value: Any) -> bytes:
    """Any value as YAML, which includes JSON."""
    return chunk(2, orjson.dumps(value) + b"\n")


def _extensions(at: int, given: Object) -> bytes:
    return b"".join(_named(at, key, _any(value)) for key, value in given.items() if key.startswith("x-"))


def _path_item(item: Object) -> bytes:
    out = b"".join(chunk(at, _operation(item[method])) for method, at in _METHODS.items() if method in item)
    return out + b"".join(chunk(9, _parameter(row)) for row in item.get("parameters", ()))


def _operation(given: Object) -> bytes:
    out = b"".join(chunk(1, tag.encode()) for tag in given.get("tags", ()))
    out += _texts(given, {"operationId": 5})
    for at, key in ((6, "produces"), (7, "consumes")):
        out += b"".join(chunk(at, media.encode()) for media in given.get(key, ()))
    out += b"".join(chunk(8, _parameter(row)) for row in given["parameters"])
    answers = b"".join(_named(1, code, chunk(1, _answer(row))) for code, row in given["responses"].items())
    return out + chunk(9, answers) + _extensions(13, given)


def _answer(given: Object) -> bytes:
    out = _texts(given, {"description": 1})
    return out + chunk(2, chunk(1, _schema(given["schema"]))) if "schema" in given else out


def _parameter(given: Object) -> bytes:
    if given["in"] == "body":
        body = _texts(given, {"name": 2, "in": 3}) + number(4, given["required"]) + chunk(5, _schema(given["schema"]))
        return chunk(1, chunk(1, body))
    place = _PLACES[given["in"]]
    type_, unique = (6, 20) if given["in"] == "query" else (5, 19)
    other = number(1, given.get("required", False))
    other += _texts(given, {"in": 2, "description": 3, "name": 4, "type": type_})
    other += number(unique, given.get("uniqueItems", False))
    return chunk(1, chunk(2, chunk(place, other)))


def _schemas(given: Object) -> bytes:
    return b"".join(_named(1, name, _schema(part)) for name, part in given.items())


def _schema(given: Object) -> bytes:
    out = _texts(given, _SCHEMA_TEXTS)
    if "default" in given:
        out += chunk(5, _any(given["default"]))
    for key, at in _SCHEMA_NUMBERS.items():
        out += number(at, given[key]) if key in given else b""
    for key, at in _SCHEMA_BOUNDS.items():
        out += varint(at << 3 | 1) + struct.pack("<d", given[key]) if key in given else b""
    out += b"".join(chunk(19, name.encode()) for name in given.get("required", ()))
    out += b"".join(chunk(20, _any(value)) for value in given.get("enum", ()))
    more = given.get("additionalProperties")
    if more is not None:
        out += chunk(21, number(2, more) if isinstance(more, bool) else chunk(1, _schema(more)))
    if "type" in given:
        out += chunk(22, chunk(1, given["type"].encode()))
    if "items" in given:
        out += chunk(23, chunk(1, _schema(given["items"])))
    if "properties" in given:
        out += chunk(25, _schemas(given["properties"]))
    return out + _extensions(31, given)
