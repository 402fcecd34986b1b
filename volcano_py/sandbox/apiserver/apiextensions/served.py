"""Served: one version of a custom resource: decoding, pruning, defaults, validation, columns.

Kubernetes: the handlers of apiextensions-apiserver.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import orjson

from volcano_py.sandbox.apiserver.apimachinery import errors
from volcano_py.sandbox.apiserver.apimachinery.errors import Cause, bad_request
from volcano_py.sandbox.apiserver.apimachinery.field_path import value_at
from volcano_py.sandbox.apiserver.cel import expressions
from volcano_py.sandbox.apiserver.printers import jsonpath, table
from volcano_py.sandbox.apiserver.registry.api import report
from volcano_py.sandbox.apiserver.registry.request import Request
from volcano_py.sandbox.apiserver.registry.strategy import Strategy
from volcano_py.sandbox.apiserver.schema import codec
from volcano_py.sandbox.apiserver.schema.structural import (
    Defaulter,
    Schema,
    Validator,
    copied,
    has_defaults,
    prune,
    shape,
)
from volcano_py.sandbox.apiserver.schema.types import builtin
from volcano_py.sandbox.apiserver.schema.violations import causes

Object = dict[str, Any]


class Compiled:
    """What a schema is compiled into. It has no state of a cluster, so equal schemas share it."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.type = shape({**schema, "type": "object"}, embedded=True)
        self.defaulter = Defaulter(schema) if has_defaults(schema) else None
        self.validator = Validator(schema)
        self.rules = expressions.Rules(schema)


@lru_cache(maxsize=64)
def _compiled(schema: bytes) -> Compiled:
    """By text: a program that starts many clusters compiles each schema once."""
    return Compiled(orjson.loads(schema))


class Served:
    """One version of one CRD: decoding, validation, columns."""

    def __init__(self, crd: Object, version: Object) -> None:
        spec = crd["spec"]
        self.group: str = spec["group"]
        self.kind: str = spec["names"]["kind"]
        self.version: str = version["name"]
        self.api_version = f"{self.group}/{self.version}"
        compiled = _compiled(orjson.dumps((version.get("schema") or {}).get("openAPIV3Schema") or {}))
        self.schema = compiled.schema
        self.type = compiled.type
        self.defaulter = compiled.defaulter
        self.validator = compiled.validator
        self.rules = compiled.rules
        self.preserve = bool(spec.get("preserveUnknownFields"))
        self.printer = table.custom_printer(version.get("additionalPrinterColumns") or [])
        self.subresources: Object = version.get("subresources") or {}
        self.deprecated = bool(version.get("deprecated"))
        self.deprecation = version.get("deprecationWarning") or f"{self.api_version} {self.kind} is deprecated"
        self.plural: str = spec["names"]["plural"]
        self.terminating = False
        self.stored: Served | None = None  # the version that is stored, where there are several
        self.selectable = [row["jsonPath"] for row in version.get("selectableFields") or []]

    def decode(self, request: Request, raw: Object, problems: list[str]) -> Object:
        """A plain object, pruned and defaulted; raises StatusError 400 or StrictError."""
        version, kind = raw.get("apiVersion"), raw.get("kind")
        if not kind or not isinstance(kind, str):
            text = orjson.dumps(raw).decode()
            raise bad_request(f"Object 'Kind' is missing in '{text[:512]}'")
        if version != self.api_version or kind != self.kind:
            if kind != self.kind:
                meta = raw.get("metadata")
                name = meta.get("name", "") if isinstance(meta, dict) else ""
                cause = errors.invalid_value("kind", kind, f"must be {self.kind}")
                raise errors.invalid(str(version).rpartition("/")[0], kind, name, [cause])
            text = (
                f"the API version in the data ({version or ''}) does not match the expected API version "
                f"({self.api_version})"
            )
            raise bad_request(text)
        unknown = codec.Unknown()
        obj: Object = {key: value for key, value in raw.items() if key not in ("apiVersion", "kind")}
        try:
            meta = codec.normalise(builtin("meta.v1.ObjectMeta"), obj.get("metadata"), unknown)
        except codec.DecodeError as error:
            text = str(error).replace("Go struct field ", "Go struct field ObjectMeta.", 1)
            raise bad_request(
                f'{self.kind} in version "{self.version}" cannot be handled as a {self.kind}: {text}'
            ) from None
        obj["metadata"] = meta or {}
        found = [f'unknown field "metadata.{path}"' for path in unknown.paths]
        pruned: list[str] = []
        if not self.preserve:
            prune(obj, self.schema, True, "", pruned)
        found.extend(f'unknown field "{path}"' for path in sorted(pruned))
        report(request, [*problems, *found])
        if self.defaulter is not None:
            self.defaulter.apply(obj)
        return obj

    def validate(self, obj: Object, old: Object | None) -> list[Cause]:
        """The errors of an object according to the schema and its rules."""
        if self.terminating and old is None:
            why = "create not allowed while custom resource definition is terminating"
            raise errors.forbidden(self.group, self.plural, obj["metadata"].get("name", ""), why)
        out: list[Cause] = []
        whole = {"apiVersion": self.api_version, "kind": self.kind, **obj}
        if not self.validator.is_valid(whole):
            out = causes(whole, self.schema)
            if old is not None:
                out = [cause for cause in out if not _unchanged(cause.field, obj, old)]
        blocking = ("FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany")
        if self.rules.present and any(c.reason in (*blocking, "FieldValueTypeInvalid") for c in out):
            text = "some validation rules were not checked because the object was invalid; correct the existing "
            out.append(errors.invalid_value("<nil>", None, text + "errors to complete validation"))
        elif self.rules.present:
            out = [*out, *self.rules.check(whole, old)]
        return out

    def from_stored(self, obj: Object) -> Object:
        """A stored object, decoded with the rules of the stored version, in this version."""
        out: Object = copied(obj)
        stored = self.stored or self
        if not self.preserve:
            prune(out, stored.schema, True)
        if stored.defaulter is not None:
            stored.defaulter.apply(out)
        if stored is not self and not self.preserve:
            prune(out, self.schema, True)
        return out

    def openapi_schema(self) -> Schema:
        return self.schema

    def fields(self, obj: Object) -> dict[str, str]:
        out = {}
        for path in self.selectable:
            found = jsonpath.find(path, obj)
            if found and found[0] is not None:
                value = found[0]
                out[path.removeprefix(".")] = str(value).lower() if isinstance(value, bool) else str(value)
            else:
                out[path.removeprefix(".")] = ""
        return out


def _unchanged(field: str, new: Object, old: Object) -> bool:
    """Ratcheting: an error that the stored object already has is accepted while its value does not change."""
    missing = object()
    now, then = value_at(new, field, missing), value_at(old, field, missing)
    if now is missing and then is missing:
        parent = field.rpartition(".")[0]
        return bool(parent) and value_at(new, parent, missing) == value_at(old, parent, missing)
    return now is not missing and then is not missing and now == then


def strategy_of(served: Served) -> Strategy:
    """The rules of a custom kind."""

    def validate_create(obj: Object, request: Request) -> list[Cause]:
        return served.validate(obj, None)

    def validate_update(new: Object, old: Object, request: Request) -> list[Cause]:
        return served.validate(new, old)

    status = served.subresources.get("status") is not None
    return Strategy(
        validate_create=validate_create,
        validate_update=validate_update,
        validate_status=validate_update,
        has_status=status,
        has_generation=True,
        unconditional_update=False,
        fields=served.fields,
        field_names=frozenset(path.removeprefix(".") for path in served.selectable),
        reset_fields=("status",) if status else (),
        reset_status_fields=("metadata", "spec"),
    )
