"""Drift: a difference that was found in the cache, as data and as one sentence with both values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import msgspec

Form = Literal["missing", "deleted", "stale", "content", "model", "sum", "assumed"]
"""missing   the API server has the object, and the cache does not
deleted   the cache has the object, and the API server does not
stale     the cache has an older version
content   the cache has the same version with another content
model     the model has not what the informer has
sum       a sum or count of the model differs from its pods
assumed   a bind or an eviction that the model counts, and that nothing writes"""
_LONGEST = 200


class Drift(NamedTuple):
    """One difference. `kept`: what the cache had; `found`: what it has now."""

    kind: str
    key: str
    uid: str
    form: Form
    field: str
    kept: str
    found: str

    @property
    def text(self) -> str:
        where = f" {self.field}" if self.field else ""
        return f"the cache had{where} {self.kept}, correct is {self.found} ({self.form}); it was corrected"


def of_objects(kind: str, key: str, form: Form, kept: Any, found: Any) -> Drift:
    """The difference between two versions of an object; None: there was or is no such object."""
    uid = (found if found is not None else kept).metadata.uid
    if kept is None or found is None:
        return Drift(kind, key, uid, form, "", _version(kept), _version(found))
    if kept.metadata.uid != found.metadata.uid:
        return Drift(kind, key, uid, form, "metadata.uid", kept.metadata.uid, found.metadata.uid)
    different = first_difference(kept, found)
    if different is None or different[0] == "metadata.resourceVersion":
        different = ("metadata.resourceVersion", kept.metadata.resource_version, found.metadata.resource_version)
    field, a, b = different
    return Drift(kind, key, uid, form, field, _shown(a), _shown(b))


def first_difference(kept: Any, found: Any, path: str = "") -> tuple[str, Any, Any] | None:
    """The path of the first field that differs, with both values; the version only if nothing else does."""
    if kept == found:
        return None
    pairs: list[tuple[str, Any, Any]] = []
    if isinstance(kept, msgspec.Struct) and type(kept) is type(found):
        names = zip(kept.__struct_fields__, kept.__struct_encode_fields__, strict=True)
        pairs = [(shown, getattr(kept, name), getattr(found, name)) for name, shown in names]
    elif isinstance(kept, Mapping) and isinstance(found, Mapping):
        pairs = [(str(k), kept.get(k), found.get(k)) for k in sorted(kept.keys() | found.keys(), key=str)]
    elif isinstance(kept, list) and isinstance(found, list) and len(kept) == len(found):
        pairs = [(str(i), a, b) for i, (a, b) in enumerate(zip(kept, found, strict=True))]
    of_version = None
    for name, a, b in pairs:
        inner = first_difference(a, b, f"{path}.{name}" if path else name)
        if inner is not None:
            if inner[0] != "metadata.resourceVersion":
                return inner
            of_version = inner
    return of_version or (path, kept, found)


def _version(obj: Any) -> str:
    return "no object" if obj is None else f"version {obj.metadata.resource_version} of uid {obj.metadata.uid}"


def _shown(value: Any) -> str:
    if isinstance(value, msgspec.Raw):
        value = bytes(value).decode(errors="replace")
    elif isinstance(value, msgspec.Struct):
        value = msgspec.to_builtins(value)
    text = repr(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
