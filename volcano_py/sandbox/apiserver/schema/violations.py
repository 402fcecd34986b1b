"""Why a custom resource does not match its schema: the causes of the 422, with kube-apiserver's texts."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from volcano_py.sandbox.apiserver.apimachinery.errors import (
    Cause,
    duplicate,
    invalid_value,
    required,
    type_invalid,
    unsupported,
)
from volcano_py.sandbox.apiserver.schema import formats

Schema = dict[str, Any]
NOWHERE = "<nil>"  # the path of errors without a path in kube-apiserver


def causes(value: Any, schema: Schema, path: str = "", root: bool = True) -> list[Cause]:
    """The errors of a value; the paths are those of the object."""
    out: list[Cause] = []
    _walk(value, schema, path, out, root)
    return out


def type_name(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if value is None:
        return "null"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def _body(path: str) -> str:
    """A status is validated on its own, with paths from there."""
    path = path.removeprefix("status.")
    return f"{path} in body" if path else " in body"


def _shown(value: Any) -> Any:
    return value if value is not None else "null"


def _walk(value: Any, schema: Schema, path: str, out: list[Cause], root: bool = False) -> None:
    kind = schema.get("type", "")
    if value is None:
        if schema.get("nullable"):
            return
        if kind and not schema.get("x-kubernetes-int-or-string"):
            text = f'{_body(path)} must be of type {kind}: "null"'
            out.append(type_invalid(path, "null", text))
            return
    found = type_name(value)
    if schema.get("x-kubernetes-int-or-string"):
        if found not in ("integer", "string"):
            text = f'{_body(path)} must be of type integer,string: "{found}"'
            out.append(type_invalid(path, value, text))
            return
    elif kind and found != kind and not (kind == "number" and found == "integer") and not _whole(kind, value):
        text = f'{_body(path)} must be of type {kind}: "{found}"'
        out.append(type_invalid(path, found, text))
        if kind == "integer" and found == "number":
            form = f"with format {schema['format']}" if schema.get("format") else "(default format)"
            text = f"Checked value must be of type integer {form} in {path}"
            out.append(invalid_value(NOWHERE, "", text))
        return
    _enum(value, schema, path, out)
    if found == "string":
        _string(value, schema, path, out)
    elif found in ("integer", "number"):
        _number(value, schema, path, out)
    elif found == "array":
        _array(value, schema, path, out)
    elif found == "object":
        _object(value, schema, path, out, root)
    _combined(value, schema, path, out)


def _whole(kind: str, value: Any) -> bool:
    return kind == "integer" and isinstance(value, float) and value.is_integer()


def _enum(value: Any, schema: Schema, path: str, out: list[Cause]) -> None:
    choices = schema.get("enum")
    if choices is not None and not any(type_name(c) == type_name(value) and c == value for c in choices):
        out.append(unsupported(path, value, list(choices)))


@lru_cache(maxsize=2048)
def pattern(text: str) -> re.Pattern[str] | None:
    """A Go regular expression for Python; None if Python does not support it."""
    try:
        return re.compile(text.replace(r"\z", r"\Z").replace("[[:alnum:]]", "[A-Za-z0-9]"))
    except re.error:
        return None


def _string(value: str, schema: Schema, path: str, out: list[Cause]) -> None:
    limit = schema.get("maxLength")
    if limit is not None and len(value) > limit:
        out.append(Cause("FieldValueTooLong", f"Too long: may not be more than {limit} bytes", path))
    least = schema.get("minLength")
    if least is not None and len(value) < least:
        out.append(invalid_value(path, value, f"{_body(path)} should be at least {least} chars long"))
    regexp = schema.get("pattern")
    if regexp:
        compiled = pattern(regexp)
        if compiled is not None and not compiled.search(value):
            out.append(invalid_value(path, value, f"{_body(path)} should match '{regexp}'"))
    name = schema.get("format")
    if name and not formats.matches(name, value):
        out.append(invalid_value(path, value, f'{_body(path)} must be of type {name}: "{value}"'))
        out[-1] = type_invalid(path, value, f'{_body(path)} must be of type {name}: "{value}"')


def _number(value: float, schema: Schema, path: str, out: list[Cause]) -> None:
    _range(value, schema, path, out)
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None:
        if schema.get("exclusiveMinimum") and value <= least:
            out.append(invalid_value(path, value, f"{_body(path)} should be greater than {least}"))
        elif value < least:
            text = f"{_body(path)} should be greater than or equal to {least}"
            out.append(invalid_value(path, value, text))
    if most is not None:
        if schema.get("exclusiveMaximum") and value >= most:
            out.append(invalid_value(path, value, f"{_body(path)} should be less than {most}"))
        elif value > most:
            text = f"{_body(path)} should be less than or equal to {most}"
            out.append(invalid_value(path, value, text))
    step = schema.get("multipleOf")
    if step and (value / step) % 1:
        out.append(invalid_value(path, value, f"{_body(path)} should be a multiple of {step}"))


_RANGES = {"int32": 1 << 31, "int64": 1 << 63}


def _range(value: float, schema: Schema, path: str, out: list[Cause]) -> None:
    limit = _RANGES.get(schema.get("format", ""))
    if limit is not None and not -limit <= value < limit:
        text = f"Checked value must be of type {schema.get('type')} with format {schema['format']} in {path}"
        out.append(invalid_value(NOWHERE, "", text))


def _array(value: list[Any], schema: Schema, path: str, out: list[Cause]) -> None:
    most, least = schema.get("maxItems"), schema.get("minItems")
    if most is not None and len(value) > most:
        out.append(Cause("FieldValueTooMany", f"Too many: {len(value)}: must have at most {most} items", path))
    if least is not None and len(value) < least:
        out.append(invalid_value(path, len(value), f"{_body(path)} should have at least {least} items"))
    items = schema.get("items")
    if isinstance(items, dict):
        for index, item in enumerate(value):
            _walk(item, items, f"{path}[{index}]", out)
    kind = schema.get("x-kubernetes-list-type")
    if kind in ("map", "set"):
        keys = schema.get("x-kubernetes-list-map-keys") or []
        seen: list[Any] = []
        for index, item in enumerate(value):
            identity = {k: item.get(k) for k in keys} if kind == "map" and isinstance(item, dict) else item
            if identity in seen:
                out.append(duplicate(f"{path}[{index}]", identity))
            seen.append(identity)


def _object(value: Schema, schema: Schema, path: str, out: list[Cause], root: bool) -> None:
    for name in schema.get("required") or ():
        if name not in value:
            out.append(required(f"{path}.{name}" if path else name))
    most, least = schema.get("maxProperties"), schema.get("minProperties")
    if most is not None and len(value) > most:
        out.append(Cause("FieldValueTooMany", f"Too many: {len(value)}: must have at most {most} items", path))
    if least is not None and len(value) < least:
        out.append(invalid_value(path, len(value), f"{_body(path)} should have at least {least} properties"))
    properties = schema.get("properties") or {}
    extra = schema.get("additionalProperties")
    for name, item in value.items():
        inner = properties.get(name)
        if inner is not None:
            if root and name == "metadata":
                _metadata(item, inner, out)
                continue
            _walk(item, inner, f"{path}.{name}" if path else name, out)
        elif isinstance(extra, dict):
            _walk(item, extra, f"{path}.{name}" if path else name, out)
    if schema.get("x-kubernetes-embedded-resource") and not root:
        _embedded(value, path, out)


def _metadata(value: Any, schema: Schema, out: list[Cause]) -> None:
    for name, inner in (schema.get("properties") or {}).items():
        if isinstance(value, dict) and name in value:
            _walk(value[name], inner, f"metadata.{name}", out)


def _embedded(value: Schema, path: str, out: list[Cause]) -> None:
    for name in ("apiVersion", "kind"):
        if not value.get(name):
            out.append(required(f"{path}.{name}", "must not be empty"))


_WORDS = {
    "anyOf": "must validate at least one schema (anyOf)",
    "oneOf": "must validate one and only one schema (oneOf)",
    "allOf": "must validate all the schemas (allOf)",
    "not": "must not validate the schema (not)",
}


def _combined(value: Any, schema: Schema, path: str, out: list[Cause]) -> None:
    def fits(inner: Schema) -> bool:
        return not causes(value, inner, path, False)

    tests: dict[str, Callable[[Any], bool]] = {
        "allOf": lambda rows: all(map(fits, rows)),
        "anyOf": lambda rows: any(map(fits, rows)),
        "oneOf": lambda rows: sum(map(fits, rows)) == 1,
        "not": lambda inner: not fits(inner),
    }
    if schema.get("x-kubernetes-int-or-string"):
        tests.pop("anyOf")
    for name, test in tests.items():
        rows = schema.get(name)
        if rows and not test(rows):
            text = _WORDS[name]
            if name == "oneOf":
                count = sum(map(fits, rows))
                text += ". Found none valid" if not count else f". Found {count} valid alternatives"
            if name == "allOf":
                for row in rows:
                    out.extend(causes(value, row, path, False))
            elif name != "not" and not any(map(fits, rows)):
                # the closest alternative
                found: list[list[Cause]] = [causes(value, row, path, False) for row in rows]
                out.extend(sorted(found, key=len)[0])
            out.append(invalid_value(NOWHERE, "", f'"{path}" {text}'))
