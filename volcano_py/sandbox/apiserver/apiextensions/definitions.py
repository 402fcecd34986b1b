"""CustomResourceDefinitions: serves the resources of a definition until it is deleted.

Kubernetes: apiextensions-apiserver. The status conditions that its controllers set (names accepted, established)
are set here as soon as the definition is stored.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import orjson

from volcano_py.api.meta import parse_time
from volcano_py.sandbox.apiserver.apiextensions import validation
from volcano_py.sandbox.apiserver.apimachinery import errors, metadata
from volcano_py.sandbox.apiserver.apimachinery.errors import Cause, bad_request
from volcano_py.sandbox.apiserver.apimachinery.field_path import value_at
from volcano_py.sandbox.apiserver.apply import managed
from volcano_py.sandbox.apiserver.cel import expressions
from volcano_py.sandbox.apiserver.endpoints.verbs import delete as deletion
from volcano_py.sandbox.apiserver.printers import jsonpath, table
from volcano_py.sandbox.apiserver.registry.api import Api, Plain, Result, report
from volcano_py.sandbox.apiserver.registry.request import Request
from volcano_py.sandbox.apiserver.registry.resources import CUSTOM_VERBS, STATUS_VERBS, Resource, Subresource
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
from volcano_py.sandbox.apiserver.storage.store import ADDED, DELETED, MODIFIED, Entry, Event

Object = dict[str, Any]

CRDS = "customresourcedefinitions.apiextensions.k8s.io"
FINALIZER = "customresourcecleanup.apiextensions.k8s.io"


class Served:
    """One version of one CRD: decoding, validation, columns."""

    def __init__(self, crd: Object, version: Object) -> None:
        spec = crd["spec"]
        self.group: str = spec["group"]
        self.kind: str = spec["names"]["kind"]
        self.version: str = version["name"]
        self.api_version = f"{self.group}/{self.version}"
        self.schema: Schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
        self.preserve = bool(spec.get("preserveUnknownFields"))
        self.type = shape({**self.schema, "type": "object"}, embedded=True)
        self.printer = table.custom_printer(version.get("additionalPrinterColumns") or [])
        self.defaulter = Defaulter(self.schema) if has_defaults(self.schema) else None
        self.validator = Validator(self.schema)
        self.rules = expressions.Rules(self.schema)
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
        """What the schema and its rules have against an object."""
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
        """What was stored, read by the rules of the version that is stored, as this one shows it."""
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
    """Ratcheting: an error that the stored object has is accepted while its value stays as it is."""
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


class Definitions:
    """Keeps the registry in step with the stored CRDs."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.resource = api.resource("apiextensions.k8s.io", "customresourcedefinitions")
        self.resource.collection.observers.append(self.changed)
        self.served: dict[str, list[tuple[str, str, str]]] = {}

    def changed(self, event: Event) -> None:
        """A CRD was written."""
        name = event.entry.name
        if event.type == DELETED:
            self.withdraw(name)
            return
        crd = event.entry.load()
        if not _condition(crd, "Established"):
            if event.type == ADDED:
                self._soon(self.accept, name)
            return
        before = event.prev.load() if event.prev is not None else None
        if before is None or not _condition(before, "Established") or before["spec"] != crd["spec"]:
            self.serve(crd)
        if crd["metadata"].get("deletionTimestamp"):
            for where in self.served.get(name, []):
                resource = self.api.registry.get(*where)
                if resource is not None:
                    resource.custom.terminating = True
            self._soon(self.clean, name)
        else:
            stored = next(v["name"] for v in crd["spec"]["versions"] if v["storage"])
            if stored not in (crd.get("status") or {}).get("storedVersions", []):
                self._soon(self.accept, name)

    def established(self, document: Object) -> Object:
        """A definition with the status of one that has been accepted, for storing it without waiting."""
        crd: Object = codec.normalise(self.resource.type, document, codec.Unknown())
        default(crd)
        stamp = metadata.now()
        stored = [version["name"] for version in crd["spec"]["versions"] if version.get("storage")]
        crd["metadata"].setdefault("generation", 1)
        crd["status"] = {
            "conditions": _accepted(stamp),
            "acceptedNames": dict(crd["spec"]["names"]),
            "storedVersions": stored,
        }
        return crd

    def _soon(self, function: Any, name: str) -> None:
        try:
            asyncio.get_running_loop().call_soon(function, name)
        except RuntimeError:
            function(name)

    def accept(self, name: str) -> None:
        """Set the conditions that make a definition served."""
        entry = self.resource.collection.get("", name)
        if entry is None:
            return
        crd = entry.load()
        names = crd["spec"]["names"]
        status = crd.setdefault("status", {})
        stamp = metadata.now()
        accepted, conflict = self._accepted_names(crd)
        stored = next((v["name"] for v in crd["spec"]["versions"] if v["storage"]), "")
        versions = status.setdefault("storedVersions", [])
        if stored and stored not in versions:
            versions.append(stored)
        if conflict:
            status["acceptedNames"] = {"plural": "", "kind": "", **accepted}
            status["conditions"] = [
                _row("NamesAccepted", "False", stamp, conflict[0], conflict[1]),
                _row("Established", "False", stamp, "NotAccepted", "not all names are accepted"),
            ]
        else:
            status["acceptedNames"] = dict(names)
            if not _condition(crd, "Established"):
                status["conditions"] = _accepted(stamp)
        obj = codec.normalise(self.resource.type, crd, codec.Unknown())
        managed.update(
            self.resource.type,
            entry.load(),
            obj,
            manager="kube-apiserver",
            api_version="apiextensions.k8s.io/v1",
            subresource="status",
            time=_at_once(crd, stamp),
            created=False,
        )
        if obj != entry.load():
            self.api.write(self.resource, MODIFIED, obj)

    def _accepted_names(self, crd: Object) -> tuple[Object, tuple[str, str] | None]:
        """The names that no other definition of the group has, and the last conflict found."""
        spec = crd["spec"]
        names = spec["names"]
        resources: set[str] = set()
        kinds: set[str] = set()
        for entry in self.resource.collection.select():
            other = entry.load()
            if entry.name == crd["metadata"]["name"] or other["spec"]["group"] != spec["group"]:
                continue
            taken = (other.get("status") or {}).get("acceptedNames") or {}
            resources |= {taken.get("plural", ""), taken.get("singular", ""), *(taken.get("shortNames") or [])}
            kinds |= {taken.get("kind", ""), taken.get("listKind", "")}
        accepted: Object = {}
        conflict = None
        for key, used, reason in (
            ("plural", resources, "PluralConflict"),
            ("singular", resources, "SingularConflict"),
            ("shortNames", resources, "ShortNamesConflict"),
            ("kind", kinds, "KindConflict"),
            ("listKind", kinds, "ListKindConflict"),
        ):
            value = names.get(key)
            both = sorted(set(value if isinstance(value, list) else [value]) & used - {None, ""})
            if both:
                conflict = reason, f'"{both[0]}" is already in use'
            elif value:
                accepted[key] = value
        return accepted, conflict

    def serve(self, crd: Object) -> None:
        """Register the resources of a definition, in place of what was served before."""
        self.withdraw(crd["metadata"]["name"], keep=True)
        spec = crd["spec"]
        names = spec["names"]
        collection = self.api.store.collection(f"{names['plural']}.{spec['group']}")
        rows = []
        stored = Served(crd, next(version for version in spec["versions"] if version["storage"]))
        for version in spec["versions"]:
            if not version["served"]:
                continue
            served = stored if version["storage"] else Served(crd, version)
            served.stored = stored
            converted = served.from_stored if len(spec["versions"]) > 1 else None
            resource = Resource(
                spec["group"],
                version["name"],
                names["kind"],
                names["plural"],
                names.get("singular") or names["kind"].lower(),
                spec["scope"] == "Namespaced",
                CUSTOM_VERBS,
                served.type,
                strategy_of(served),
                collection,
                tuple(names.get("shortNames") or ()),
                tuple(names.get("categories") or ()),
                names.get("listKind") or names["kind"] + "List",
                _subresources(served, names["kind"]),
                served,
                converted,
            )
            self.api.registry.add(resource)
            rows.append((spec["group"], version["name"], names["plural"]))
        self.served[crd["metadata"]["name"]] = rows

    def withdraw(self, name: str, keep: bool = False) -> None:
        """Stop serving a definition; its objects go with it unless they are kept."""
        for group, version, plural in self.served.pop(name, []):
            resource = self.api.registry.get(group, version, plural)
            self.api.registry.remove(group, version, plural)
            if resource is not None and not keep:
                self.api.store.drop(resource.collection.name)

    def clean(self, name: str) -> None:
        """Carry on with the deletion of a definition: its objects first."""
        entry = self.resource.collection.get("", name)
        if entry is None:
            return
        crd = entry.load()
        if FINALIZER not in (crd["metadata"].get("finalizers") or []):
            return
        collection = self.api.store.collections.get(name)
        resource = self.api.registry.find(crd["spec"]["group"], crd["spec"]["names"]["plural"])
        if collection is not None and resource is not None:
            for item in list(collection.select()):
                obj = item.load()
                if obj["metadata"].get("finalizers"):
                    if not obj["metadata"].get("deletionTimestamp"):
                        obj["metadata"]["generation"] = obj["metadata"].get("generation", 1) + 1
                        obj["metadata"]["deletionTimestamp"] = metadata.now()
                        obj["metadata"]["deletionGracePeriodSeconds"] = 0
                        self.api.write(resource, MODIFIED, obj)
                else:
                    self.api.write(resource, DELETED, obj)
            if collection.entries:
                with contextlib.suppress(RuntimeError):
                    asyncio.get_running_loop().call_later(0.5, self.clean, name)
                return
        crd["metadata"]["finalizers"] = [f for f in crd["metadata"]["finalizers"] if f != FINALIZER]
        if crd["metadata"]["finalizers"]:
            self.api.write(self.resource, MODIFIED, crd)
        else:
            crd["metadata"].pop("finalizers")
            self.api.write(self.resource, DELETED, crd)


def _subresources(served: Served, kind: str) -> dict[str, Subresource]:
    out = {}
    if served.subresources.get("status") is not None:
        out["status"] = Subresource("status", kind, STATUS_VERBS)
    if served.subresources.get("scale") is not None:
        out["scale"] = Subresource("scale", "Scale", STATUS_VERBS, "autoscaling", "v1")
    return out


def _accepted(stamp: str) -> list[Object]:
    return [
        _row("NamesAccepted", "True", stamp, "NoConflicts", "no conflicts found"),
        _row("Established", "True", stamp, "InitialNamesAccepted", "the initial names have been accepted"),
    ]


def _row(type_: str, status: str, stamp: str, reason: str, message: str) -> Object:
    return {
        "type": type_,
        "status": status,
        "lastTransitionTime": stamp,
        "reason": reason,
        "message": message,
    }


def _at_once(crd: Object, stamp: str) -> str:
    """When the status was written: with the write that it answers, even if a new second has begun meanwhile."""
    rows = (crd.get("metadata") or {}).get("managedFields") or ()
    last = max((row.get("time", "") for row in rows), default="")
    return last if last and parse_time(stamp) - parse_time(last) <= 1 else stamp


def _condition(crd: Object, type_: str) -> bool:
    rows = (crd.get("status") or {}).get("conditions") or []
    return any(row["type"] == type_ and row["status"] == "True" for row in rows)


# --- the strategy of the definitions themselves ----------------------------------------------------------------------


def default(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    names = spec.get("names") or {}
    if names:
        if not names.get("singular"):
            names["singular"] = names.get("kind", "").lower()
        if not names.get("listKind") and names.get("kind"):
            names["listKind"] = names["kind"] + "List"
    spec.setdefault("conversion", {"strategy": "None"})
    webhook = (spec["conversion"] or {}).get("webhook")
    if webhook and (webhook.get("clientConfig") or {}).get("service") is not None:
        webhook["clientConfig"]["service"].setdefault("port", 443)
    for version in spec.get("versions") or ():
        for column in version.get("additionalPrinterColumns") or ():
            if column.get("priority") == 0:
                column.pop("priority")


def prepare_create(obj: Object, request: Request) -> None:
    meta = obj["metadata"]
    meta["generation"] = 1
    storage = [v["name"] for v in obj["spec"].get("versions") or [] if v.get("storage")]
    obj["status"] = {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": storage}


async def delete(api: Api, request: Request, entry: Entry) -> Result | Plain:
    """DELETE of a definition: it stays, terminating, until its objects are gone."""
    deletion.check_preconditions(request, entry)
    crd = entry.load()
    meta = crd["metadata"]
    if meta.get("deletionTimestamp"):
        return Result(request.resource, entry.tail)
    meta["deletionTimestamp"] = metadata.now()
    finalizers = meta.setdefault("finalizers", [])
    if FINALIZER not in finalizers:
        finalizers.append(FINALIZER)
    text = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    row = _row("Terminating", "True", meta["deletionTimestamp"], "InstanceDeletionPending", text)
    status = crd.setdefault("status", {})
    status["conditions"] = [*(status.get("conditions") or []), row]
    return Result(request.resource, api.modify(request, crd))


STRATEGY = Strategy(
    default=default,
    prepare_create=prepare_create,
    validate_create=lambda obj, request: validation.validate(obj),
    validate_update=lambda new, old, request: validation.validate_update(new, old),
    has_status=True,
    has_generation=True,
    reset_fields=("status",),
    reset_status_fields=("spec", "metadata"),
    delete=delete,
)

__all__ = ["CRDS", "STRATEGY", "Definitions", "Served", "errors"]
