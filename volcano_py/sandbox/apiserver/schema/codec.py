"""Objects of built-in kinds as Go's typed decoding and encoding changes them.

Unknown fields are dropped and reported, empty fields are dropped or added according to Go's `omitempty`, quantities and
times get their canonical text, and a value of an invalid type is a 400. Each type has one closure, created on first
use.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from volcano_py.sandbox.apiserver.apimachinery import quantity
from volcano_py.sandbox.apiserver.schema.types import Field, Type

Path = tuple[Any, Any] | None


class DecodeError(ValueError):
    """The value does not match the type; the text is sent to the client."""


class Unknown:
    """Collects the paths of unknown fields."""

    __slots__ = ("paths",)

    def __init__(self) -> None:
        self.paths: list[str] = []


def path_text(path: Path) -> str:
    """`spec.containers[0].name` from a linked path."""
    parts: list[str] = []
    while path is not None:
        path, key = path
        parts.append(f"[{key}]" if isinstance(key, int) else f".{key}")
    return "".join(reversed(parts)).removeprefix(".")


def normalise(type_: Type, value: Any, unknown: Unknown) -> Any:
    """The value as Go would encode it again; raises DecodeError."""
    try:
        return norm_of(type_)(value, None, unknown)
    except Mismatch as error:
        raise error.within(type_) from None


def norm_of(type_: Type) -> Callable[[Any, Path, Unknown], Any]:
    norm = type_.norm
    if norm is None:
        norm = type_.norm = _MAKERS[type_.kind](type_)
    return norm


def zero(type_: Type, pointer: bool) -> Any:
    """Go's encoding of an empty field without omitempty."""
    if pointer or type_.kind in ("list", "map", "bytes", "time", "microtime", "raw", "any"):
        return None
    return norm_of(type_)(None, None, Unknown())


def _go_kind(value: Any, wanted: str) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return f"number {value}" if wanted.startswith(("int", "float")) else "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


class Mismatch(DecodeError):
    """A JSON value of another type than Go's."""

    def __init__(self, value: Any, path: Path, wanted: str) -> None:
        super().__init__(f"json: cannot unmarshal {_go_kind(value, wanted)} into Go value of type {wanted}")
        self.value, self.path, self.wanted = value, path, wanted

    def within(self, root: Type) -> DecodeError:
        """The same with the field, and the struct that has it."""
        keys: list[Any] = []
        path = self.path
        while path is not None:
            path, key = path
            keys.append(key)
        names: list[str] = []
        owner, type_ = "", root
        for key in reversed(keys):
            if type_.kind != "struct":  # items of lists and maps are not in Go's path
                type_ = type_.elem or type_
                continue
            owner = type_.go_name.rpartition(".")[2]
            names.append(key)
            type_ = type_.fields[key].type
        if not names:
            return self
        where = f"{owner}.{'.'.join(names)}"
        what = _go_kind(self.value, self.wanted)
        return DecodeError(f"json: cannot unmarshal {what} into Go struct field {where} of type {self.wanted}")


def _go_type(type_: Type) -> str:
    """`v1.Container` for core.v1.Container: the package of Go, and the name."""
    return ".".join(type_.go_name.split(".")[-2:]) or type_.kind


# --- structs, maps, lists --------------------------------------------------------------------------------------------


def _struct(type_: Type) -> Callable[[Any, Path, Unknown], Any]:
    table: dict[str, tuple[Any, bool]] = {}
    always: list[tuple[str, Field]] = []

    def compile_fields() -> None:
        for name, field in type_.fields.items():
            kind = field.type.kind
            keep = (
                field.pointer
                or not field.omit_empty
                or (field.always and kind not in ("list", "map"))
                or kind in ("quantity", "intstr")
            )
            table[name] = (field, keep)
            if field.always:
                always.append((name, field))

    compiled: list[tuple[dict[str, Any], list[Any]]] = []

    def resolve() -> tuple[dict[str, Any], list[Any]]:
        # lazily, for types that contain themselves
        compile_fields()
        fields = {name: (_lazy(field.type), keep, field.pointer and keep) for name, (field, keep) in table.items()}
        zeros = [(name, field.type, field.pointer) for name, field in always]
        compiled.append((fields, zeros))
        return compiled[0]

    def norm(value: Any, path: Path, unknown: Unknown) -> Any:
        fields, zeros = compiled[0] if compiled else resolve()
        out: dict[str, Any] = {}
        if value.__class__ is dict:
            for key, item in value.items():
                row = fields.get(key)
                if row is None:
                    if path is not None or key not in ("apiVersion", "kind"):
                        unknown.paths.append(path_text((path, key)))
                    continue
                if item is None:
                    continue
                item = row[0](item, (path, key), unknown)
                if item or row[1]:
                    out[key] = item
        elif value is not None:
            raise Mismatch(value, path, _go_type(type_))
        for name, field_type, pointer in zeros:
            if name not in out:
                out[name] = zero(field_type, pointer)
        return out

    return norm


def _lazy(type_: Type) -> Callable[[Any, Path, Unknown], Any]:
    """The closure of a type, created by the first call (types may contain themselves)."""
    if type_.norm is not None:
        return type_.norm
    if type_.kind != "struct":
        return norm_of(type_)

    def first(value: Any, path: Path, unknown: Unknown) -> Any:
        return norm_of(type_)(value, path, unknown)

    return first


def _list(type_: Type) -> Callable[[Any, Path, Unknown], Any]:
    assert type_.elem is not None
    elem_type = type_.elem

    def norm(value: Any, path: Path, unknown: Unknown) -> Any:
        if value.__class__ is not list:
            if value is None:
                return None
            raise Mismatch(value, path, f"[]{_go_type(elem_type)}")
        elem = norm_of(elem_type)
        return [elem(item, (path, index), unknown) for index, item in enumerate(value)]

    return norm


def _map(type_: Type) -> Callable[[Any, Path, Unknown], Any]:
    assert type_.elem is not None
    elem_type = type_.elem

    def norm(value: Any, path: Path, unknown: Unknown) -> Any:
        if value.__class__ is not dict:
            if value is None:
                return None
            raise Mismatch(value, path, f"map[string]{_go_type(elem_type)}")
        elem = norm_of(elem_type)
        return {key: elem(item, (path, key), unknown) for key, item in value.items()}

    return norm


# --- scalars ---------------------------------------------------------------------------------------------------------


def _string(_: Type) -> Callable[[Any, Path, Unknown], Any]:
    def norm(value: Any, path: Path, unknown: Unknown) -> Any:
        if value.__class__ is str:
            return value
        if value is None:
            return ""
        raise Mismatch(value, path, "string")

    return norm


def _bool(_: Type) -> Callable[[Any, Path, Unknown], Any]:
    def norm(value: Any, path: Path, unknown: Unknown) -> Any:
        if value is True or value is False:
            return value
        if value is None:
            return False
        raise Mismatch(value, path, "bool")

    return norm


def _integer(bits: int) -> Callable[[Type], Callable[[Any, Path, Unknown], Any]]:
    limit = 1 << (bits - 1)

    def make(_: Type) -> Callable[[Any, Path, Unknown], Any]:
        def norm(value: Any, path: Path, unknown: Unknown) -> Any:
            if value.__class__ is int:
                if -limit <= value < limit:
                    return value
                raise Mismatch(value, path, f"int{bits}")
            if value is None:
                return 0
            if value.__class__ is float and value.is_integer() and abs(value) < limit:
                return int(value)
            raise Mismatch(value, path, f"int{bits}")

        return norm

    return make


def _double(_: Type) -> Callable[[Any, Path, Unknown], Any]:
    def norm(value: Any, path: Path, unknown: Unknown) -> Any:
        if value.__class__ in (int, float):
            return value
        if value is None:
            return 0
        raise Mismatch(value, path, "float64")

    return norm


def _bytes(_: Type) -> Callable[[Any, Path, Unknown], Any]:
    def norm(value: Any, path: Path, unknown: Unknown) -> Any:
        if value is None:
            return None
        if value.__class__ is not str:
            raise Mismatch(value, path, "[]uint8")
        try:
            raw = base64.b64decode("".join(value.split()), validate=True)
        except (binascii.Error, ValueError):
            at = next((i for i, c in enumerate(value) if not (c.isalnum() or c in "+/=\r\n")), len(value) // 4 * 4)
            raise DecodeError(f"illegal base64 data at input byte {at}") from None
        return base64.b64encode(raw).decode()

    return norm


_UTC_SECONDS = re.compile(r"^\d{4}-(0\d|1[0-2])-([0-2]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\dZ$")
_MICRO = re.compile(r"\.\d{6}(Z|[+-]\d\d:\d\d)$")
_RFC3339 = re.compile(r"^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)([.,]\d+)?(Z|[+-]\d\d:\d\d)$")


def parse_time(text: str) -> datetime:
    """An RFC 3339 time in UTC; raises DecodeError with Go's text."""
    match = _RFC3339.match(text)
    if match:
        try:
            year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
            micro = int(((match.group(7) or ".0")[1:] + "000000")[:6])
            zone = match.group(8)
            offset = timedelta()
            if zone != "Z":
                offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[4:6])) * (-1 if zone[0] == "-" else 1)
            moment = datetime(year, month, day, hour, minute, second, micro, timezone(offset))
            return moment.astimezone(UTC)
        except (ValueError, OverflowError):
            pass
    layout = "2006-01-02T15:04:05Z07:00"
    raise DecodeError(f'parsing time "{text}" as "{layout}": cannot parse "{text}" as "2006"')


def _time(_: Type) -> Callable[[Any, Path, Unknown], Any]:
    def norm(value: Any, path: Path, unknown: Unknown) -> Any:
        if value is None:
            return None
        if value.__class__ is not str:
            raise Mismatch(value, path, "string")
        if _UTC_SECONDS.match(value):
            return value
        return parse_time(value).strftime("%Y-%m-%dT%H:%M:%SZ")

    return norm


def _microtime(_: Type) -> Callable[[Any, Path, Unknown], Any]:
    def norm(value: Any, path: Path, unknown: Unknown) -> Any:
        if value is None:
            return None
        if value.__class__ is not str:
            raise Mismatch(value, path, "string")
        if not _MICRO.search(value):
            layout = "2006-01-02T15:04:05.000000Z07:00"
            raise DecodeError(f'parsing time "{value}" as "{layout}": cannot parse "Z" as ".000000"')
        return parse_time(value).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    return norm


def _quantity(_: Type) -> Callable[[Any, Path, Unknown], Any]:
    canonical = quantity.canonical

    def norm(value: Any, path: Path, unknown: Unknown) -> Any:
        if value is None:
            return "0"
        try:
            if value.__class__ is str:
                return canonical(value)
            if value.__class__ in (int, float):
                return canonical(repr(value))
        except quantity.QuantityError as error:
            raise DecodeError(str(error)) from None
        raise DecodeError(f"quantities must match the regular expression '{quantity.PATTERN}'")

    return norm


def _intstr(_: Type) -> Callable[[Any, Path, Unknown], Any]:
    def norm(value: Any, path: Path, unknown: Unknown) -> Any:
        if value.__class__ is str or value.__class__ is int:
            return value
        if value is None:
            return 0
        raise Mismatch(value, path, "int32")

    return norm


def _free(_: Type) -> Callable[[Any, Path, Unknown], Any]:
    def norm(value: Any, path: Path, unknown: Unknown) -> Any:
        return value

    return norm


_MAKERS: dict[str, Callable[[Type], Callable[[Any, Path, Unknown], Any]]] = {
    "struct": _struct,
    "list": _list,
    "map": _map,
    "string": _string,
    "bool": _bool,
    "int32": _integer(32),
    "int64": _integer(64),
    "double": _double,
    "bytes": _bytes,
    "time": _time,
    "microtime": _microtime,
    "quantity": _quantity,
    "intstr": _intstr,
    "duration": _string,
    "raw": _free,
    "any": _free,
}
