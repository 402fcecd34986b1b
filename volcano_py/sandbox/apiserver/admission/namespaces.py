"""Admission for namespaces: no object is created in a missing or terminating one, and DELETE only marks a namespace at
first. Kubernetes: NamespaceLifecycle, and the registry of namespaces."""

from __future__ import annotations

from typing import Any

from volcano_py.sandbox.apiserver.apimachinery import errors, metadata
from volcano_py.sandbox.apiserver.endpoints.verbs import delete as deletion
from volcano_py.sandbox.apiserver.registry.api import Api, Attributes, Plain, Result
from volcano_py.sandbox.apiserver.registry.request import Request
from volcano_py.sandbox.apiserver.storage.store import Entry

Object = dict[str, Any]

IMMORTAL = ("default", "kube-system", "kube-public")
SYSTEM = ("default", "kube-system", "kube-public", "kube-node-lease")


async def delete(api: Api, request: Request, entry: Entry) -> Result | Plain:
    """DELETE of a namespace: mark it; it is removed when it is empty and has no finalizers."""
    name = entry.name
    if name in IMMORTAL:
        raise errors.forbidden("", "namespaces", name, "this namespace may not be deleted")
    deletion.check_preconditions(request, entry)
    obj = entry.load()
    meta = obj["metadata"]
    if meta.get("deletionTimestamp"):
        if not obj.get("spec", {}).get("finalizers") and not meta.get("finalizers"):
            return Result(request.resource, api.remove(request, obj))
        why = (
            "The system is ensuring all content is removed from this namespace.  Upon completion, this namespace "
            "will automatically be purged by the system."
        )
        raise errors.conflict("", "namespaces", name, why)
    if api.admits(request.resource):
        attributes = Attributes("DELETE", request, None, {"kind": "Namespace", "apiVersion": "v1", **obj})
        await api.admit("mutating", attributes)
        await api.admit("validating", attributes)
    meta["deletionTimestamp"] = metadata.now()
    policy = request.options.get("propagationPolicy")
    if policy in ("Foreground", "Orphan"):
        finalizer = deletion.FOREGROUND if policy == "Foreground" else deletion.ORPHAN
        finalizers = meta.setdefault("finalizers", [])
        if finalizer not in finalizers:
            finalizers.append(finalizer)
    obj["status"] = {**(obj.get("status") or {}), "phase": "Terminating"}
    if not obj.get("spec", {}).get("finalizers") and not meta.get("finalizers"):
        return Result(request.resource, api.remove(request, obj))
    return Result(request.resource, api.modify(request, obj))
