"""Types of objects: one `Type` graph for decoding, pruning, field ownership, patches and protobuf.

Built-in kinds are defined by `data/types.json` (from Go's struct tags), combined with the OpenAPI definitions in the
kubernetes-validate wheel (list and map semantics). `structural.py` compiles the schemas of custom resources into the
same class.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import orjson

Norm = Callable[[Any, Any, Any], Any]

DEFINITIONS_VERSION = "v1.36.0-local"
_PREFIXES = {
    "meta": "io.k8s.apimachinery.pkg.apis.",
    "apiextensions": "io.k8s.apiextensions-apiserver.pkg.apis.",
    "apiregistration": "io.k8s.kube-aggregator.pkg.apis.",
}
SPECIAL_DEFINITIONS = {
    "quantity": "io.k8s.apimachinery.pkg.api.resource.Quantity",
    "intstr": "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
    "time": "io.k8s.apimachinery.pkg.apis.meta.v1.Time",
    "microtime": "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime",
    "duration": "io.k8s.apimachinery.pkg.apis.meta.v1.Duration",
}


class Field:
    """One field of a struct; `always` means that Go encodes it even when it is empty."""

    __slots__ = (
        "always",
        "inline",
        "merge_key",
        "name",
        "number",
        "omit_empty",
        "pointer",
        "strategy",
        "type",
    )

    def __init__(self, name: str, type_: Type, flags: str, number: int, pointer: bool) -> None:
        self.name = name
        self.type = type_
        self.number = number
        self.pointer = pointer
        self.inline = "i" in flags
        self.omit_empty = "e" in flags
        struct = type_.kind in ("struct", "time", "microtime", "intstr", "quantity", "duration") and not pointer
        self.always = not self.inline and "z" not in flags and (not self.omit_empty or struct)
        self.strategy = ""
        self.merge_key = ""


class Type:
    """A node of the graph.

    kind: struct, map, list, any (free form), or a scalar: string bool int32 int64 double bytes time microtime
    duration quantity intstr raw. `atomic` marks maps and lists owned as a whole; `keys` are those of an associative
    list; `is_set` a list of unique scalars. `norm(value, path, context)` returns the value as Go would encode it again.
    """

    __slots__ = ("atomic", "elem", "fields", "go_name", "is_set", "keys", "kind", "norm", "open", "parts", "schema")

    def __init__(self, kind: str, go_name: str = "") -> None:
        self.kind = kind
        self.go_name = go_name
        self.fields: dict[str, Field] = {}  # by JSON name, inline structs flattened
        self.parts: list[Field] = []  # as declared, inline structs kept (protobuf nests them)
        self.elem: Type | None = None
        self.atomic = False
        self.is_set = False
        self.open = False  # a struct that may have other fields too
        self.keys: tuple[str, ...] = ()
        self.norm: Norm | None = None
        self.schema: Any = None


@cache
def _table() -> dict[str, list[list[Any]]]:
    table: dict[str, list[list[Any]]] = orjson.loads((Path(__file__).parent / "data" / "types.json").read_bytes())
    return table


@cache
def definitions() -> dict[str, Any]:
    """OpenAPI definitions of the built-in kinds, by their full names."""
    # found without importing the package, whose import takes longer than the rest of the server's start
    spec = find_spec("kubernetes_validate")
    if spec is None or spec.origin is None:
        raise RuntimeError("the sandbox needs kubernetes-validate; install volcano-py[sandbox]")
    path = Path(spec.origin).parent / "kubernetes-json-schema" / DEFINITIONS_VERSION / "_definitions.json"
    schemas: dict[str, Any] = orjson.loads(path.read_bytes())["$defs"]
    return schemas


@cache
def marks() -> dict[str, Any]:
    """Enums and defaults of fields, which exist only in comments of the Go sources."""
    table: dict[str, Any] = orjson.loads((Path(__file__).parent / "data" / "enums.json").read_bytes())
    return table


def definition_name(go_name: str) -> str:
    """`core.v1.Pod` to `io.k8s.api.core.v1.Pod`."""
    return _PREFIXES.get(go_name.split(".", 1)[0], "io.k8s.api.") + go_name


def known(go_name: str) -> bool:
    return go_name in _table()


_BUILT: dict[str, Type] = {}


def builtin(go_name: str) -> Type:
    """The type of a built-in struct such as core.v1.Pod; KeyError if it does not exist."""
    found = _BUILT.get(go_name)
    if found is not None:
        return found
    rows = _table()[go_name]
    made = Type("struct", go_name)
    _BUILT[go_name] = made
    definition = definitions().get(definition_name(go_name), {})
    made.atomic = definition.get("x-kubernetes-map-type") == "atomic"
    properties = definition.get("properties", {})
    for name, spelled, flags, number, *patch in rows:
        pointer = spelled.startswith("*")
        type_ = _parse_type(spelled.lstrip("*"), properties.get(name, {}))
        field = Field(name, type_, flags, number, pointer)
        if patch:
            field.strategy = patch[0]
            field.merge_key = patch[1] if len(patch) > 1 else ""
        made.parts.append(field)
        if field.inline and type_.kind == "struct":
            made.fields.update(type_.fields)
        elif name:
            made.fields[name] = field
    return made


_PLAIN: dict[str, Type] = {}


def scalar(kind: str) -> Type:
    found = _PLAIN.get(kind)
    if found is None:
        found = _PLAIN[kind] = Type(kind)
    return found


def _parse_type(spelled: str, definition: dict[str, Any]) -> Type:
    if spelled.startswith("[]"):
        made = Type("list")
        made.elem = _parse_type(spelled[2:].lstrip("*"), definition.get("items", {}))
        kind = definition.get("x-kubernetes-list-type", "atomic")
        made.keys = tuple(definition.get("x-kubernetes-list-map-keys", ())) if kind == "map" else ()
        made.is_set = kind == "set"
        made.atomic = not made.keys and not made.is_set
        return made
    if spelled.startswith("{}"):
        made = Type("map")
        made.elem = _parse_type(spelled[2:].lstrip("*"), definition.get("additionalProperties") or {})
        made.atomic = definition.get("x-kubernetes-map-type") == "atomic"
        return made
    if "." in spelled:
        base = builtin(spelled)
        if definition.get("x-kubernetes-map-type") == "atomic" and not base.atomic:
            made = Type("struct", spelled)
            made.fields, made.parts, made.atomic = base.fields, base.parts, True
            return made
        return base
    return scalar(spelled)
