"""Validation that a type declares for its fields, with the texts and the order of kube-apiserver's.

Kubernetes: the +k8s tags of API types, and apimachinery/pkg/api/validate. A value that an update does not change is
not checked again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from volcano_py.sandbox.apiserver.apimachinery import metadata
from volcano_py.sandbox.apiserver.apimachinery.errors import (
    Cause,
    duplicate,
    field_forbidden,
    invalid_value,
    required,
    too_many,
    unsupported,
)

Object = dict[str, Any]


def _short_name(name: str) -> list[str]:
    return ["must not contain dots"] if "." in name else metadata.label_errors(name)


SHORT_NAME = _short_name
LONG_NAME = metadata.subdomain_errors
LABEL_KEY = metadata.qualified_errors
PATH_SEGMENT = metadata.path_segment_errors


@dataclass(frozen=True)
class Declared:
    """The rules of one field of a type. `struct`: the fields of its value, or of each item where `key` or `items` is
    given."""

    name: str
    struct: Callable[[], Sequence[Declared]] | None = None
    required: bool = False
    member: bool = False
    """Of a union: exactly one of its members is given."""
    pointer: bool = False
    """An empty text is a value, too."""
    items: bool = False
    key: str = ""
    """The field that identifies an item of a list."""
    most: int | None = None
    """Items of a list, or the largest number."""
    least: int | None = None
    form: Callable[[str], list[str]] | None = None
    choices: Sequence[str] = ()
    immutable: bool = False
    fixed: bool = False
    """An update may change the value, but neither set nor clear it; items are neither added nor removed."""
    always: Sequence[str] = ()
    """Fields of an item that Go writes as null when they are absent."""


def causes(fields: Sequence[Declared], new: Mapping[str, Any], old: Mapping[str, Any] | None, path: str) -> list[Cause]:
    """The errors in the fields of an object. `old`: before an update."""
    if new == old:
        return []
    out = _union([field.name for field in fields if field.member], new, path)
    for field in fields:
        now = new.get(field.name)
        before = None if old is None else old.get(field.name)
        if old is None or now != before:
            out += _field(field, now, before, f"{path}.{field.name}", updates=old is not None)
    return out


def _union(members: Collection[str], given: Mapping[str, Any], path: str) -> list[Cause]:
    chosen = [name for name in members if given.get(name) not in (None, [])]
    if not members or len(chosen) == 1:
        return []
    listed = ", ".join(f"`{name}`" for name in members)
    if not chosen:
        return [invalid_value(path, "", f"must specify one of: {listed}")]
    return [invalid_value(path, f"{{{', '.join(chosen)}}}", f"must specify exactly one of: {listed}")]


def _field(field: Declared, now: Any, before: Any, path: str, *, updates: bool) -> list[Cause]:
    if updates and (found := _transition(field, now, before, path)):
        return found
    if now in (None, []) or (now == "" and not field.pointer) or (now == 0 and field.required):
        return [required(path)] if field.required else []
    if field.items or field.key:
        return _items(field, now, before or [], path, updates=updates)
    if field.struct is not None:
        return causes(field.struct(), now, before if updates and before is not None else None, path)
    return _value(field, now, path)


def _transition(field: Declared, now: Any, before: Any, path: str) -> list[Cause]:
    """The changes that an update may not make."""
    if field.immutable:
        return [invalid_value(path, None, "field is immutable")]
    if not field.fixed:
        return []
    if field.key:
        names = [{item.get(field.key) for item in items or []} for items in (before, now)]
        out = [
            field_forbidden(f"{path}[{index}]", "item may not be added")
            for index, item in enumerate(now or [])
            if item.get(field.key) not in names[0]
        ]
        return out + [field_forbidden(path, "item may not be removed") for name in names[0] if name not in names[1]]
    if before is None:
        return [invalid_value(path, None, "field cannot be set once created")]
    return [invalid_value(path, None, "field cannot be cleared once set")] if now is None else []


def _items(field: Declared, now: list[Object], before: list[Object], path: str, *, updates: bool) -> list[Cause]:
    if field.most is not None and len(now) > field.most:
        return [too_many(path, len(now), field.most)]
    known = {item.get(field.key): item for item in before} if field.key else {}
    seen: set[Any] = set()
    out: list[Cause] = []
    doubles: list[Cause] = []
    for index, item in enumerate(now):
        at = f"{path}[{index}]"
        name = item.get(field.key)
        if field.key and name in seen:
            doubles.append(duplicate(at, {**item, **{each: item.get(each) for each in field.always}}))
        seen.add(name)
        if field.struct is not None:
            out += causes(field.struct(), item, known.get(name) if updates else None, at)
    return doubles + out


def _value(field: Declared, value: Any, path: str) -> list[Cause]:
    if field.form is not None:
        return [invalid_value(path, value, text) for text in field.form(value)]
    if field.choices and value not in field.choices:
        return [unsupported(path, value, list(field.choices))]
    if field.least is not None and value < field.least:
        return [invalid_value(path, value, f"must be greater than or equal to {field.least}")]
    if field.most is not None and value > field.most:
        return [invalid_value(path, value, f"must be less than or equal to {field.most}")]
    return []
