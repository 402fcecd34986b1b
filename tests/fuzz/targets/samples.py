"""A document with every field of a struct, made from its types."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import inspect

_DEEPEST = 9
_TEXTS = {
    "operator": "In",
    "effect": "NoSchedule",
    "phase": "Running",
    "node_name": "n",
    "cpu": "1",
    "creation_timestamp": "2026-01-01T00:00:00Z",
    "schedule": "*/5 * * * *",
    "time_zone": "Europe/Berlin",
}


def sample(type_: Any) -> Any:
    """A JSON value that decodes to the type, with all its fields."""
    return _of(inspect.type_info(type_), "", 0, ())


def _of(info: inspect.Type, name: str, depth: int, above: tuple[type, ...]) -> Any:
    match info:
        case inspect.StructType(cls=cls, fields=fields):
            if above.count(cls) > 1 or depth > _DEEPEST:
                return {f.encode_name: _of(f.type, f.name, depth + 1, above) for f in fields if f.required}
            return {f.encode_name: _of(f.type, f.name, depth + 1, (*above, cls)) for f in fields}
        case inspect.DictType(value_type=value):
            return {"cpu" if name in _AMOUNTS else "key": _of(value, "cpu" if name in _AMOUNTS else "", depth, above)}
        case inspect.ListType(item_type=item) | inspect.VarTupleType(item_type=item) | inspect.SetType(item_type=item):
            return [_of(item, name, depth, above)]
        case inspect.UnionType(types=types):
            whole = [one for one in types if not isinstance(one, inspect.NoneType)]
            return _of(whole[0], name, depth, above)
        case inspect.StrType():
            return _TEXTS.get(name, "value")
        case inspect.IntType():
            return 1
        case inspect.FloatType():
            return 0.5
        case inspect.BoolType():
            return True
        case inspect.DateTimeType():
            return "2026-01-01T00:00:00Z"
        case inspect.BytesType():
            return "dGV4dA=="
        case inspect.LiteralType(values=values):
            return values[0]
        case inspect.EnumType(cls=enum):
            return next(iter(enum)).value
        case inspect.AnyType() | inspect.RawType():
            return {"key": "value"}
        case inspect.NoneType():
            return None
    if isinstance(info, inspect.CustomType):
        return "2026-01-01T00:00:00Z"
    raise TypeError(f"no sample of {info}; add its case")


_AMOUNTS = frozenset({"requests", "limits", "capacity", "allocatable", "min_resources", "hard", "used", "allocated"})


def checked(type_: Any) -> Any:
    """The sample, which must decode."""
    value = sample(type_)
    msgspec.convert(value, type_)
    return value
