"""CustomResourceDefinitions: serves the resources of a definition until it is deleted.

Kubernetes: apiextensions-apiserver. The status conditions that its controllers set (names accepted, established)
are set here as soon as the definition is stored.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from volcano_py.api.meta import parse_time
from volcano_py.sandbox.apiserver.apiextensions import validation
from volcano_py.sandbox.apiserver.apiextensions.served import Served, strategy_of
from volcano_py.sandbox.apiserver.apimachinery import metadata
from volcano_py.sandbox.apiserver.apply import managed
from volcano_py.sandbox.apiserver.endpoints.verbs import delete as deletion
from volcano_py.sandbox.apiserver.registry.api import Api, Plain, Result
from volcano_py.sandbox.apiserver.registry.request import Request
from volcano_py.sandbox.apiserver.registry.resources import CUSTOM_VERBS, STATUS_VERBS, Resource, Subresource
from volcano_py.sandbox.apiserver.registry.strategy import Strategy
from volcano_py.sandbox.apiserver.schema import codec
from volcano_py.sandbox.apiserver.storage.store import ADDED, DELETED, MODIFIED, Entry, Event

Object = dict[str, Any]

CRDS = "customresourcedefinitions.apiextensions.k8s.io"
FINALIZER = "customresourcecleanup.apiextensions.k8s.io"


class Definitions:
    """Keeps the registry consistent with the stored CRDs."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.resource = api.resource("apiextensions.k8s.io", "customresourcedefinitions")
        self.resource.collection.observers.append(self.changed)
        self.served: dict[str, list[tuple[str, str, str]]] = {}

    def changed(self, event: Event) -> None:
        """Called when a CRD was written."""
        name = event.entry.name
        if event.type == DELETED:
            self.withdraw(name)
            return
        crd = event.entry.load()
        if not _condition(crd, "Established"):
            if event.type == ADDED:
                self._call_soon(self.accept, name)
            return
        before = event.prev.load() if event.prev is not None else None
        if before is None or not _condition(before, "Established") or before["spec"] != crd["spec"]:
            self.serve(crd)
        if crd["metadata"].get("deletionTimestamp"):
            for where in self.served.get(name, []):
                resource = self.api.registry.get(*where)
                if resource is not None:
                    resource.custom.terminating = True
            self._call_soon(self.clean, name)
        else:
            stored = next(v["name"] for v in crd["spec"]["versions"] if v["storage"])
            if stored not in (crd.get("status") or {}).get("storedVersions", []):
                self._call_soon(self.accept, name)

    def established(self, document: Object) -> Object:
        """A definition with the status of an accepted one, to store it without waiting."""
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

    def _call_soon(self, function: Any, name: str) -> None:
        try:
            asyncio.get_running_loop().call_soon(function, name)
        except RuntimeError:
            function(name)

    def accept(self, name: str) -> None:
        """Set the conditions after which a definition is served."""
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
        """The names that no other definition of the group has, and the last conflict."""
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
        """Register the resources of a definition, and remove what was served before."""
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
        """Stop serving a definition; its objects are deleted unless they are kept."""
        for group, version, plural in self.served.pop(name, []):
            resource = self.api.registry.get(group, version, plural)
            self.api.registry.remove(group, version, plural)
            if resource is not None and not keep:
                self.api.store.drop(resource.collection.name)

    def clean(self, name: str) -> None:
        """Continue the deletion of a definition, beginning with its objects."""
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
    """The time of the write to the status: it equals the time in the response, even after the end of that second."""
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
    """DELETE of a definition: it stays, terminating, until its objects are deleted."""
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
