"""A manifest with every field that a Struct decodes, so that each of them can be given a wrong type."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import inspect


def sample(struct: type[msgspec.Struct]) -> Any:
    """JSON with all fields of the Struct, lists and maps with one entry each."""
    return _sample(inspect.type_info(struct), ())


def _sample(info: inspect.Type, above: tuple[type, ...]) -> Any:
    match info:
        case inspect.StructType():
            if info.cls in above:
                return {}
            return {f.encode_name: _sample(f.type, (*above, info.cls)) for f in info.fields}
        case inspect.UnionType():
            return _sample(next(t for t in info.types if not isinstance(t, inspect.NoneType)), above)
        case inspect.ListType() | inspect.SetType() | inspect.FrozenSetType() | inspect.VarTupleType():
            return [_sample(info.item_type, above)]
        case inspect.DictType():
            return {"a": _sample(info.value_type, above)}
        case inspect.LiteralType():
            return info.values[0]
        case inspect.BoolType():
            return False
        case inspect.IntType() | inspect.FloatType():
            return 1
        case inspect.StrType() | inspect.AnyType() | inspect.BytesType() | inspect.RawType():
            return "1"
        case _:
            raise TypeError(f"no sample of {info}")
