"""Subresources other than status and scale: binding, eviction, finalize, and those that are updates of the object.

Kubernetes: the REST storages of pods and namespaces.
"""

from __future__ import annotations

from typing import Any

import orjson

from volcano_py.sandbox.apiserver.apimachinery import errors, metadata, selectors
from volcano_py.sandbox.apiserver.endpoints.logs import log
from volcano_py.sandbox.apiserver.endpoints.ownership import tracked
from volcano_py.sandbox.apiserver.endpoints.verbs import delete as deletion
from volcano_py.sandbox.apiserver.endpoints.verbs import patch as patching
from volcano_py.sandbox.apiserver.endpoints.verbs import update as updating
from volcano_py.sandbox.apiserver.registry.api import Api, Attributes, Plain, Result, complete
from volcano_py.sandbox.apiserver.registry.request import Request
from volcano_py.sandbox.apiserver.schema import codec
from volcano_py.sandbox.apiserver.schema.types import builtin
from volcano_py.sandbox.apiserver.serializer.bodies import read_object
from volcano_py.sandbox.apiserver.storage.store import DELETED, MODIFIED, Entry

Object = dict[str, Any]


def install(api: Api) -> None:
    """Register the built-in subresources."""
    table = api.subresources
    table["pods", "binding"] = binding
    table["pods", "eviction"] = eviction
    table["pods", "log"] = log
    table["pods", "resize"] = as_update
    table["pods", "ephemeralcontainers"] = as_update
    table["namespaces", "finalize"] = finalize
    table["certificatesigningrequests.certificates.k8s.io", "approval"] = as_update


def entry_of(request: Request) -> Entry:
    """The object that a subresource belongs to, or 404."""
    resource = request.resource
    entry = resource.collection.get(request.namespace, request.name)
    if entry is None:
        raise errors.not_found(resource.group, resource.plural, request.name)
    return entry


def typed_body(request: Request, go_name: str, kind: str) -> Object:
    """The request's body as a built-in kind."""
    raw = read_object(request.body, request.content_type, kind, None)
    try:
        body: Object = codec.normalise(builtin(go_name), raw, codec.Unknown())
    except codec.DecodeError as error:
        raise errors.bad_request(f'{kind} in version "v1" cannot be handled as a {kind}: {error}') from None
    return body


async def as_update(api: Api, request: Request) -> Result | Plain:
    """A subresource that is read and written like the whole object."""
    if request.verb == "get":
        return Result(request.resource, entry_of(request).tail)
    if request.verb == "update":
        return await updating.update(api, request)
    return await patching.patch_object(api, request)


# --- pods ------------------------------------------------------------------------------------------------------------


async def binding(api: Api, request: Request) -> Result | Plain:
    """POST pods/x/binding: assign a pod to a node."""
    body = typed_body(request, "core.v1.Binding", "Binding")
    name = body["metadata"].get("name") or request.name
    if name != request.name:
        text = f"the name of the object ({name}) does not match the name on the URL ({request.name})"
        raise errors.bad_request(text)
    return await bind(api, request, body)


async def bind(api: Api, request: Request, body: Object) -> Plain:
    """Execute a Binding."""
    target = body.get("target") or {}
    causes = []
    if target.get("kind", "") not in ("", "Node"):
        causes.append(errors.unsupported("target.kind", target["kind"], ["Node", "<empty>"]))
    if not target.get("name"):
        causes.append(errors.required("target.name"))
    if causes:
        text = "; ".join(f"{cause.field}: {cause.message}" for cause in causes)
        raise errors.StatusError(500, "", text)
    if api.admits(request.resource):
        body["metadata"]["namespace"] = request.namespace
        whole = {"kind": "Binding", "apiVersion": "v1", **body}
        tracked(request, "core.v1.Binding", whole, "v1", ("metadata", "target"))
        attributes = Attributes("CREATE", request, whole, None)
        await api.admit("mutating", attributes)
        await api.admit("validating", attributes)
    entry = request.resource.collection.get(request.namespace, request.name)
    if entry is None:
        raise errors.not_found("", "pods", request.name)
    meta = body["metadata"]
    uid, version = meta.get("uid", ""), meta.get("resourceVersion", "")
    why = ""
    if uid and uid != entry.uid:
        key = f"/registry/pods/{request.namespace}/{request.name}"
        why = f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: "
        why += f"Precondition failed: UID in precondition: {uid}, UID in object meta: {entry.uid}"
    elif version and version != str(entry.rv):
        why = (
            f"Precondition failed: ResourceVersion in precondition: {version}, "
            f"ResourceVersion in object meta: {entry.rv}"
        )
    if why:
        raise errors.conflict("", "pods", request.name, why)
    pod = entry.load()
    spec = pod["spec"]
    if pod["metadata"].get("deletionTimestamp"):
        why = f"pod {request.name} is being deleted, cannot be assigned to a host"
    elif spec.get("nodeName"):
        why = f'pod {request.name} is already assigned to node "{spec["nodeName"]}"'
    elif spec.get("schedulingGates"):
        why = f"pod {request.name} has non-empty .spec.schedulingGates"
    if why:
        raise errors.conflict("", "pods/binding", request.name, why)
    spec["nodeName"] = target["name"]
    annotations = meta.get("annotations")
    if annotations:
        pod["metadata"].setdefault("annotations", {}).update(annotations)
    labels = meta.get("labels")
    if labels:
        pod["metadata"].setdefault("labels", {}).update(labels)
    status = pod.setdefault("status", {})
    conditions = [row for row in status.get("conditions") or [] if row["type"] != "PodScheduled"]
    conditions.append(
        {
            "type": "PodScheduled",
            "status": "True",
            "lastProbeTime": None,
            "lastTransitionTime": metadata.now(),
        }
    )
    status["conditions"] = conditions
    status.pop("nominatedNodeName", None)
    api.modify(request, pod)
    return Plain({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}, 201)


async def eviction(api: Api, request: Request) -> Result | Plain:
    """POST pods/x/eviction: a deletion that respects PodDisruptionBudgets."""
    body = typed_body(request, "policy.v1.Eviction", "Eviction")
    name = body["metadata"].get("name") or request.name
    if name != request.name:
        raise errors.bad_request("name in URL does not match name in Eviction object")
    entry = entry_of(request)
    pod = entry.load()
    request.options = body.get("deleteOptions") or {}
    if request.options.get("dryRun"):
        request.dry_run = True
    deletion.check_preconditions(request, entry)
    if api.admits(request.resource):
        body["metadata"]["namespace"] = request.namespace
        attributes = Attributes("CREATE", request, {"kind": "Eviction", "apiVersion": "policy/v1", **body}, None)
        await api.admit("mutating", attributes)
        await api.admit("validating", attributes)
        request.subresource = ""
    phase = (pod.get("status") or {}).get("phase")
    free = phase in ("Succeeded", "Failed", "Pending") or pod["metadata"].get("deletionTimestamp")
    if not free:
        _respect_budgets(api, request, pod)
    if not pod["metadata"].get("deletionTimestamp") and not request.dry_run:
        row = {
            "type": "DisruptionTarget",
            "status": "True",
            "lastProbeTime": None,
            "lastTransitionTime": metadata.now(),
            "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",
        }
        status = pod.setdefault("status", {})
        rows = [c for c in status.get("conditions") or [] if c["type"] != row["type"]]
        status["conditions"] = [*rows, row]
        entry = api.write(request.resource, MODIFIED, pod)
    await deletion.delete_entry(api, request, entry)
    return Plain({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}, 201)


def _respect_budgets(api: Api, request: Request, pod: Object) -> None:
    collection = api.resource("policy", "poddisruptionbudgets").collection
    matching = []
    for entry in collection.select(request.namespace):
        budget = entry.load()
        selector = budget["spec"].get("selector")
        if selector is None:
            continue
        test = selectors.from_label_selector(selector)
        if test is None or test(pod["metadata"].get("labels") or {}):
            matching.append(budget)
    if not matching:
        return
    if len(matching) > 1:
        text = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        raise errors.StatusError(500, "InternalError", text)
    budget = matching[0]
    status = budget.get("status") or {}
    name = budget["metadata"]["name"]
    ready = any(
        c["type"] == "Ready" and c["status"] == "True" for c in (pod.get("status") or {}).get("conditions") or []
    )
    policy = budget["spec"].get("unhealthyPodEvictionPolicy")
    if not ready and (
        policy == "AlwaysAllow"
        or (status.get("currentHealthy", 0) >= status.get("desiredHealthy", 0) and status.get("desiredHealthy", 0) > 0)
    ):
        return
    text = "Cannot evict pod as it would violate the pod's disruption budget."
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        message = f"The disruption budget {name} is still being processed by the server."
        info = {"causes": [{"reason": "DisruptionBudget", "message": message}], "retryAfterSeconds": 10}
        raise errors.StatusError(429, "TooManyRequests", text, info, {"Retry-After": "10"})
    if status.get("disruptionsAllowed", 0) <= 0:
        message = (
            f"The disruption budget {name} needs {status.get('desiredHealthy', 0)} healthy pods and has "
            f"{status.get('currentHealthy', 0)} currently"
        )
        raise errors.StatusError(
            429, "TooManyRequests", text, {"causes": [{"reason": "DisruptionBudget", "message": message}]}
        )
    if not request.dry_run:
        status["disruptionsAllowed"] -= 1
        if not status["disruptionsAllowed"]:
            row = {
                "type": "DisruptionAllowed",
                "status": "False",
                "observedGeneration": status.get("observedGeneration", 0),
                "lastTransitionTime": metadata.now(),
                "reason": "InsufficientPods",
                "message": "",
            }
            rows = [c for c in status.get("conditions") or [] if c["type"] != row["type"]]
            status["conditions"] = [*rows, row]
        status.setdefault("disruptedPods", {})[request.name] = metadata.now()
        api.write(api.resource("policy", "poddisruptionbudgets"), "MODIFIED", budget)


# --- namespaces ------------------------------------------------------------------------------------------------------


async def finalize(api: Api, request: Request) -> Result | Plain:
    """PUT namespaces/x/finalize: change spec.finalizers; without any a terminating namespace is removed."""
    raw = read_object(request.body, request.content_type, "Namespace", None)
    new = api.decode(request, raw)
    entry = entry_of(request)
    old = entry.load()
    version = new["metadata"].get("resourceVersion", "")
    if version and version != str(entry.rv):
        raise errors.conflict("", "namespaces", request.name, errors.MODIFIED)
    finalizers = (new.get("spec") or {}).get("finalizers") or []
    old["spec"] = {"finalizers": finalizers} if finalizers else {}
    gone = not finalizers and old["metadata"].get("deletionTimestamp") and not old["metadata"].get("finalizers")
    if gone:
        shown = orjson.dumps(old)[1:]
        api.commit(request, DELETED, old)
        return Result(request.resource, shown)
    if old == entry.load():
        return Result(request.resource, entry.tail)
    return Result(request.resource, api.modify(request, old))


__all__ = ["binding", "complete", "install"]
