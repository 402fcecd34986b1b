"""The schemas of Kubernetes' own types inside of ours, spelled out from its published definitions without their prose.

A definition must not refer to another: what is shared is written out wherever it is used.
"""

from __future__ import annotations

import functools
import importlib.resources
import json
from typing import Any

from schema import Schema, quantity, string

RELEASE = "v1.36.0-local"
_CORE = "io.k8s.api.core.v1."
_KEPT = ("format", "required", "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type")
_PORT_PROTOCOL = "TCP"


def core_type(name: str) -> Schema:
    """The schema of a type of the core group, such as PodSpec."""
    return _spelled({"$ref": _CORE + name})


@functools.cache
def _definitions() -> dict[str, Any]:
    data = importlib.resources.files("kubernetes_validate") / "kubernetes-json-schema" / RELEASE / "_definitions.json"
    definitions: dict[str, Any] = json.loads(data.read_text())["$defs"]
    return definitions


def _spelled(given: Schema) -> Schema:
    if "$ref" in given:
        return _named(given["$ref"].rpartition("/")[2])
    kind = given.get("type", "object")
    schema: Schema = {"type": kind if isinstance(kind, str) else next(k for k in kind if k != "null")}
    schema |= {key: given[key] for key in _KEPT if key in given}
    if "properties" in given:
        schema["properties"] = {name: _spelled(part) for name, part in given["properties"].items()}
    if "items" in given:
        schema["items"] = _spelled(given["items"])
        _complete_keys(schema)
    if isinstance(given.get("additionalProperties"), dict):
        schema["additionalProperties"] = _spelled(given["additionalProperties"])
    return schema


def _named(name: str) -> Schema:
    short = name.rpartition(".")[2]
    if short == "Quantity":
        return quantity()
    if short == "IntOrString":
        return {"x-kubernetes-int-or-string": True}
    if short == "Time":
        return string(format="date-time")
    return _spelled(_definitions()[name])


def _complete_keys(schema: Schema) -> None:
    """A key of a list must be required or have a default: ports are of TCP, a name that is missing is empty."""
    item = schema["items"]
    for key in schema.get("x-kubernetes-list-map-keys", ()):
        if key not in item.get("required", ()):
            item["properties"][key]["default"] = _PORT_PROTOCOL if key == "protocol" else ""
