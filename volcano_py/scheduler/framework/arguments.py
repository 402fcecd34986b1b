"""Typed arguments of plugins and actions, read from the free-form maps of the configuration. Volcano:
Arguments.

A plugin declares a msgspec struct. Each field has a default, and its wire name is the key in the configuration
(`binpack.weight`). A value of an invalid type or an unknown key results in a warning that names the key and the
nearest valid one; the default is used. Invalid arguments never stop the scheduler.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec

from volcano_py.api.duration import parse_duration

A = TypeVar("A", bound=msgspec.Struct)
N = TypeVar("N", int, float)

_BOOLS = {
    text: value
    for texts, value in (
        (("1", "t", "T", "TRUE", "true", "True"), True),
        (("0", "f", "F", "FALSE", "false", "False"), False),
    )
    for text in texts
}


def get_int(value: Any) -> int | None:
    """An int and nothing else: 1.0 and "1" are rejected, as in Volcano."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def get_float(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def get_bool(value: Any) -> bool | None:
    """A boolean, or text that Go's ParseBool accepts."""
    return value if isinstance(value, bool) else _BOOLS.get(value) if isinstance(value, str) else None


def get_string(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def not_negative(value: N, otherwise: N) -> N:
    """The value, or a default if it is negative."""
    return value if value >= 0 else otherwise


_READERS = {
    "int": (get_int, "a whole number"),
    "float": (get_float, "a number"),
    "bool": (get_bool, "true or false"),
    "str": (get_string, "text"),
}


@functools.cache
def _fields(type_: type[msgspec.Struct]) -> dict[str, msgspec.structs.FieldInfo]:
    """The fields by wire name. Cached: resolving the annotations takes longer than the rest of opening a plugin."""
    return {f.encode_name: f for f in msgspec.structs.fields(type_)}


def decode(
    type_: type[A],
    owner: str,
    arguments: Mapping[str, Any] | None,
    *,
    prefixes: tuple[str, ...] = (),
    moved: Mapping[str, str] = MappingProxyType({}),
) -> tuple[A, list[str]]:
    """Read `arguments` into a struct; returns it with the warnings to log.

    `prefixes`: prefixes of keys (`binpack.resources.`) whose entries are stored in the field `extra` (a dict) of
    structs that have one. `moved`: keys of older versions, each with the remedy; one that ends in a dot is a prefix.
    """
    declared = _fields(type_)
    if not arguments:  # most plugins, in each session
        return type_(**({"extra": {}} if "extra" in declared else {})), []
    warnings: list[str] = []
    values: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    fields = {key: f for key, f in declared.items() if f.name != "extra"}
    for key, value in arguments.items():
        f = fields.get(key)
        if f is None:
            if key.startswith(prefixes) and prefixes:
                extra[key] = value
            elif remedy := _remedy(key, moved):
                warnings.append(f"{owner}: argument {key} is ignored: {remedy}")
            else:
                near = get_close_matches(key, [*fields, *prefixes], 1)
                hint = f"; did you mean {near[0]}?" if near else f"; valid values are {', '.join(fields) or 'none'}"
                warnings.append(f"{owner}: argument {key} is unknown and ignored{hint}")
            continue
        name = getattr(f.type, "__name__", str(f.type))
        if name not in _READERS:
            try:
                values[f.name] = msgspec.convert(_in_lower_case(value), f.type)
            except msgspec.ValidationError as e:
                warnings.append(f"{owner}: argument {key}: {e}; the default stays in force")
            continue
        read, meaning = _READERS[name]
        got = read(value)
        if got is None:
            warnings.append(f"{owner}: argument {key} is {value!r}, it must be {meaning}; the default stays in force")
        else:
            values[f.name] = got
    if "extra" in declared:
        values["extra"] = extra
    return type_(**values), warnings


def read_duration(
    arguments: msgspec.Struct, field: str, *, above_zero: bool = False, otherwise: str = ""
) -> tuple[float | None, str]:
    """The seconds of a field that is a duration, and the warning if it is not usable: its default is used then.

    None: the default is empty, and so is the field, or it is not usable; `otherwise` is what this means.
    """
    key, declared = next((k, f) for k, f in _fields(type(arguments)).items() if f.name == field)
    text, default = getattr(arguments, field), declared.default
    if not text and not default:
        return None, ""
    try:
        seconds = parse_duration(text)
    except ValueError:
        seconds = -1.0
    if seconds > 0 or (seconds == 0 and not above_zero):
        return seconds, ""
    least = "above 0" if above_zero else "of at least 0"
    warning = f"argument {key} is {text!r}, and must be a duration such as 90s or 1h30m, {least}"
    return (parse_duration(default) if default else None), f"{warning}; {otherwise or f'{default} is used'}"


def _remedy(key: str, moved: Mapping[str, str]) -> str:
    return next((r for old, r in moved.items() if key == old or (old.endswith(".") and key.startswith(old))), "")


def _in_lower_case(value: Any) -> Any:
    """A list of maps with keys that begin in lower case: Go reads `Utilization` as `utilization`."""
    if isinstance(value, list) and all(isinstance(row, dict) for row in value):
        return [{f"{key[:1].lower()}{key[1:]}": inner for key, inner in row.items()} for row in value]
    return value
