"""The part of a large answer that a story compares: some entries of a list, keys, or the essence of OpenAPI schemas."""

from __future__ import annotations

from typing import Any


def at(value: Any, path: str) -> Any:
    """What is at a dotted path; None when there is nothing."""
    for part in path.split("."):
        if isinstance(value, list):
            value = value[int(part)] if part.isdigit() and int(part) < len(value) else None
        elif isinstance(value, dict):
            value = value.get(part)
        else:
            return None
    return value


def filtered(rule: dict[str, Any], value: Any) -> Any:
    """Keep the entries of one list whose key is among those asked for."""
    *parents, last = rule["list"].split(".")
    holder = at(value, ".".join(parents)) if parents else value
    if isinstance(holder, dict) and isinstance(holder.get(last), list):
        holder[last] = [row for row in holder[last] if at(row, rule["key"]) in rule["in"]]
    return value


def projected(rule: str, value: Any) -> Any:
    """What a rule keeps: keys, openapi-index, or schemas:A,B."""
    if not isinstance(value, dict):
        return value
    if rule == "keys":
        return sorted(value)
    if rule == "openapi-index":
        return {"paths": {key: row for key, row in value["paths"].items() if ".example.com" not in key}}
    names = rule.removeprefix("schemas:").split(",")
    schemas = value.get("components", {}).get("schemas", {})
    return {
        "topLevel": sorted(value),
        "openapi": value.get("openapi"),
        "info": value.get("info"),
        "schemas": {name: _keywords(schemas[name], 2) for name in names if name in schemas},
        "componentKeys": sorted(value.get("components", {})),
        "operations": _operations(value.get("paths", {}), rule),
    }


_KEYWORDS = (
    "type",
    "required",
    "format",
    "enum",
    "minimum",
    "maximum",
    "pattern",
    "default",
    "nullable",
    "$ref",
    "allOf",
)


def _keywords(schema: Any, depth: int) -> Any:
    out = {key: schema[key] for key in schema if key in _KEYWORDS or key.startswith("x-")}
    if depth and "properties" in schema:
        out["properties"] = {key: _keywords(row, depth - 1) for key, row in schema["properties"].items()}
    if isinstance(schema.get("items"), dict) and depth:
        out["items"] = _keywords(schema["items"], 0)
    if isinstance(schema.get("additionalProperties"), dict):
        out["additionalProperties"] = _keywords(schema["additionalProperties"], 0)
    return out


def _operations(paths: dict[str, Any], rule: str) -> dict[str, Any]:
    kept = ("operationId", "x-kubernetes-action", "x-kubernetes-group-version-kind")
    out = {}
    for path, methods in paths.items():
        if "core.v1" in rule and "/pods" not in path:
            continue
        rows = {
            method: {key: row[key] for key in kept if key in row}
            for method, row in methods.items()
            if method in ("get", "put", "post", "delete", "patch", "options", "head")
        }
        if rows:
            out[path] = rows
    return out
