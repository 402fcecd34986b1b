"""OpenAPI v2: all documents of v3 in one, for older clients, and for kubectl when v3 does not contain a kind."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Object = dict[str, Any]

METHODS = ("get", "put", "post", "delete", "options", "head", "patch")
_PRODUCES = ["application/json", "application/yaml"]
_KEPT = (
    "default",
    "description",
    "enum",
    "format",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "pattern",
    "required",
    "title",
    "type",
    "uniqueItems",
)


def document(parts: Iterable[Object]) -> Object:
    """The paths and schemas of all group versions. `parts`: their documents of v3."""
    paths: Object = {}
    definitions: Object = {}
    security: Object = {}
    for part in parts:
        components = part["components"]
        paths |= {at: _path_item(item) for at, item in part["paths"].items()}
        definitions |= {name: schema(given) for name, given in components["schemas"].items() if name not in definitions}
        security |= components.get("securitySchemes", {})
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": "v1.36.1"},
        "paths": dict(sorted(paths.items())),
        "definitions": dict(sorted(definitions.items())),
        "parameters": {},
        "securityDefinitions": security,
        "security": [{name: []} for name in security],
    }


def _path_item(item: Object) -> Object:
    out: Object = {method: _operation(item[method]) for method in METHODS if method in item}
    if "parameters" in item:
        out["parameters"] = [_parameter(row) for row in item["parameters"]]
    return out


def _operation(given: Object) -> Object:
    out = {key: value for key, value in given.items() if key in ("tags", "operationId") or key.startswith("x-")}
    out["produces"] = _PRODUCES
    out["parameters"] = [_parameter(row) for row in given.get("parameters", ())]
    body = given.get("requestBody")
    if body is not None:
        content = body["content"]
        out["consumes"] = list(content)
        carried = schema(next(iter(content.values()))["schema"])
        out["parameters"].append({"name": "body", "in": "body", "required": True, "schema": carried})
    out["responses"] = {}
    for code, answer in given["responses"].items():
        contents = [schema(row["schema"]) for row in answer.get("content", {}).values()]
        out["responses"][code] = {"description": answer["description"], **({"schema": contents[0]} if contents else {})}
    return out


def _parameter(given: Object) -> Object:
    out = {key: given[key] for key in ("name", "in", "description", "required") if key in given}
    schema: Object = given["schema"]
    return out | schema


def schema(given: Object) -> Object:
    """A schema in v2: a reference has no siblings, and there are no alternatives."""
    wrapped = given.get("allOf", ())
    if "$ref" in given or len(wrapped) == 1:
        target = given.get("$ref") or wrapped[0].get("$ref", "")
        out: Object = {"$ref": target.replace("#/components/schemas/", "#/definitions/")}
        return out | {key: given[key] for key in ("description", "default") if key in given}
    out = {key: value for key, value in given.items() if key in _KEPT or key.startswith("x-")}
    if "oneOf" in given and "type" not in given:  # numbers that may be text, and text that may be a number
        out["type"] = "string"
    if given.get("nullable"):
        out.pop("type", None)
        return out
    if given.get("x-kubernetes-preserve-unknown-fields"):
        return out
    if "properties" in given:
        out["properties"] = {name: schema(part) for name, part in given["properties"].items()}
    if "items" in given:
        out["items"] = schema(given["items"])
    more = given.get("additionalProperties")
    if more is not None:
        out["additionalProperties"] = more if isinstance(more, bool) else schema(more)
    return out
