"""DELETE of one object or of a collection: grace, finalizers, propagation, preconditions.

Kubernetes: handlers/delete.go and Store.Delete.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from volcano_py.sandbox.apiserver.apimachinery import errors, metadata
from volcano_py.sandbox.apiserver.registry.api import Api, Attributes, Plain, Result, complete
from volcano_py.sandbox.apiserver.registry.request import Request, integer
from volcano_py.sandbox.apiserver.schema import codec
from volcano_py.sandbox.apiserver.schema.types import builtin
from volcano_py.sandbox.apiserver.serializer import bodies
from volcano_py.sandbox.apiserver.serializer.bodies import ParseError
from volcano_py.sandbox.apiserver.storage.store import Entry

Object = dict[str, Any]

ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"


def read_options(request: Request) -> None:
    """DeleteOptions from the body, else from the query; raises the server's 400 or 422."""
    options: Object = {}
    if request.body:
        try:
            raw = bodies.parse(request.body, request.content_type, None)
        except ParseError as error:
            text = "the object provided is unrecognized (must be of type DeleteOptions): couldn't get version/kind; "
            raise errors.bad_request(f"{text}json parse error: {error}") from None
        if isinstance(raw, dict) and raw.get("kind") not in (None, "", "DeleteOptions"):
            text = f'no kind "{raw["kind"]}" is registered for version "{raw.get("apiVersion", "")}" in scheme'
            raise errors.bad_request(text)
        if raw is not None:
            try:
                options = codec.normalise(builtin("meta.v1.DeleteOptions"), raw, codec.Unknown())
            except codec.DecodeError as error:
                text = f'DeleteOptions in version "v1" cannot be handled as a DeleteOptions: {error}'
                raise errors.bad_request(text) from None
    else:
        query = request.query
        if "gracePeriodSeconds" in query:
            options["gracePeriodSeconds"] = integer(query, "gracePeriodSeconds")
        if "propagationPolicy" in query:
            options["propagationPolicy"] = query["propagationPolicy"]
        if "orphanDependents" in query:
            options["orphanDependents"] = query["orphanDependents"].lower() == "true"
        if "dryRun" in query:
            options["dryRun"] = [query["dryRun"]]
    causes = []
    policy = options.get("propagationPolicy")
    if policy is not None and "orphanDependents" in options:
        text = "orphanDependents and deletionPropagation cannot be both set"
        causes.append(errors.invalid_value("propagationPolicy", policy, text))
    elif policy is not None and policy not in ("Foreground", "Background", "Orphan"):
        causes.append(errors.unsupported("propagationPolicy", policy, ["Background", "Foreground", "Orphan"]))
    dry_run = options.get("dryRun") or []
    if any(item != "All" for item in dry_run):
        causes.append(errors.unsupported("dryRun", dry_run, ["All"]))
    if causes:
        raise errors.invalid("meta.k8s.io", "DeleteOptions", "", causes)
    request.dry_run = request.dry_run or bool(dry_run)
    request.options = options


async def delete(api: Api, request: Request) -> Result | Plain:
    """Delete one object; returns the object if it still exists or its strategy returns it, else a Status."""
    read_options(request)
    resource = request.resource
    for warning in resource.strategy.delete_warnings(request):
        request.warn(warning)
    entry = resource.collection.get(request.namespace, request.name)
    if entry is None:
        raise errors.not_found(resource.group, resource.plural, request.name)
    if resource.strategy.delete is not None:
        answer: Result | Plain = await resource.strategy.delete(api, request, entry)
        return answer
    tail, gone = await delete_entry(api, request, entry)
    if gone and not resource.strategy.returns_deleted:
        return success(request, entry)
    return Result(resource, tail)


def success(request: Request, entry: Entry) -> Plain:
    """The Status of a finished deletion."""
    resource = request.resource
    info = errors.details(resource.group, resource.plural, entry.name, uid=entry.uid)
    return Plain({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": info})


async def delete_entry(api: Api, request: Request, entry: Entry) -> tuple[bytes, bool]:
    """Execute a deletion: (bytes of the object, whether it is removed)."""
    resource = request.resource
    strategy = resource.strategy
    if api.admits(resource):
        attributes = Attributes("DELETE", request, None, complete(resource, entry.load()))
        await api.admit("mutating", attributes)
        await api.admit("validating", attributes)
        current = resource.collection.get(request.namespace or entry.namespace, entry.name)
        if current is None:
            raise errors.not_found(resource.group, resource.plural, entry.name)
        entry = current
    check_preconditions(request, entry)
    obj = entry.load()
    meta = obj["metadata"]
    strategy.before_delete(obj, request)
    graceful, pending = _before_delete(request, obj)
    if pending:
        # already being deleted; a repeated request
        return entry.tail, False
    _garbage_finalizers(request, meta)
    finalizers = meta.get("finalizers")
    if not graceful:
        if not finalizers:
            return api.remove(request, obj), True
        mark_deleting(meta)
    tail = entry.tail if entry.load() == obj else api.modify(request, obj)
    if finalizers or meta.get("deletionGracePeriodSeconds", 0) > 0:
        return tail, False
    return api.remove(request, obj), True


def check_preconditions(request: Request, entry: Entry) -> None:
    """Check uid and resourceVersion of DeleteOptions; 409 if they differ."""
    conditions = request.options.get("preconditions") or {}
    resource = request.resource
    uid, revision = conditions.get("uid"), conditions.get("resourceVersion")
    text = ""
    if uid is not None and uid != entry.uid:
        text = (
            f"the UID in the precondition ({uid}) does not match the UID in record ({entry.uid}). "
            "The object might have been deleted and then recreated"
        )
    elif revision is not None and revision != str(entry.rv):
        text = (
            f"the ResourceVersion in the precondition ({revision}) does not match the ResourceVersion in record "
            f"({entry.rv}). The object might have been modified"
        )
    if text:
        raise errors.conflict(resource.error_group, resource.kind, entry.name, text)


def _before_delete(request: Request, obj: Object) -> tuple[bool, bool]:
    """Set the deletion's time and grace period: (graceful, already pending)."""
    strategy = request.resource.strategy
    meta = obj["metadata"]
    requested = request.options.get("gracePeriodSeconds")
    if strategy.grace is None:
        return False, False
    if meta.get("deletionTimestamp"):
        current = meta.get("deletionGracePeriodSeconds") or 0
        if not current:
            return False, False
        if requested is None or requested >= current:
            return False, True
        if requested < 0:
            requested = 1
        began = codec.parse_time(meta["deletionTimestamp"]) - timedelta(seconds=current)
        ends = began + timedelta(seconds=requested)
        meta["deletionTimestamp"] = ends.strftime("%Y-%m-%dT%H:%M:%SZ")
        meta["deletionGracePeriodSeconds"] = requested
        return True, False
    grace = strategy.grace(obj, requested, request)
    ends = codec.parse_time(metadata.now()) + timedelta(seconds=grace)
    meta["deletionTimestamp"] = ends.strftime("%Y-%m-%dT%H:%M:%SZ")
    meta["deletionGracePeriodSeconds"] = grace
    if meta.get("generation"):
        meta["generation"] += 1
    return True, False


def mark_deleting(meta: Object) -> None:
    """Mark an object that has finalizers, of a kind without grace period, as deleted now."""
    if meta.get("deletionTimestamp") is None:
        if meta.get("generation"):
            meta["generation"] += 1
        meta["deletionTimestamp"] = metadata.now()
    meta["deletionGracePeriodSeconds"] = 0


def _garbage_finalizers(request: Request, meta: Object) -> None:
    """Add or remove the collector's finalizers for the propagation policy."""
    options = request.options
    current = list(meta.get("finalizers") or [])
    policy = options.get("propagationPolicy")
    if policy is None and options.get("orphanDependents") is not None:
        policy = "Orphan" if options["orphanDependents"] else "Background"
    if policy is None:
        if ORPHAN in current:
            policy = "Orphan"
        elif FOREGROUND in current:
            policy = "Foreground"
        else:
            policy = request.resource.strategy.default_propagation
    wanted = [finalizer for finalizer in current if finalizer not in (ORPHAN, FOREGROUND)]
    if policy == "Orphan":
        wanted.append(ORPHAN)
    elif policy == "Foreground":
        wanted.append(FOREGROUND)
    if sorted(wanted) == sorted(current):
        return
    if wanted:
        meta["finalizers"] = wanted
    else:
        meta.pop("finalizers", None)


async def delete_collection(api: Api, request: Request, entries: list[Entry]) -> list[bytes]:
    """Delete every entry; missing ones are ignored. Returns their former bytes."""
    out = []
    for entry in entries:
        single = Request(
            "deletecollection",
            request.resource,
            entry.namespace,
            entry.name,
            user=request.user,
            query=request.query,
            dry_run=request.dry_run,
            options=request.options,
            manager=request.manager,
        )
        try:
            await delete_entry(api, single, entry)
        except errors.StatusError as error:
            if error.code != 404:
                raise
            continue
        out.append(entry.tail)
    return out
