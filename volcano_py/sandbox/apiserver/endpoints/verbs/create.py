"""POST: creates an object. Kubernetes: handlers/create.go and Store.Create."""

from __future__ import annotations

from typing import Any

import orjson

from volcano_py.sandbox.apiserver.apimachinery import errors, metadata
from volcano_py.sandbox.apiserver.apply import managed
from volcano_py.sandbox.apiserver.auth import authorization
from volcano_py.sandbox.apiserver.endpoints.lifecycle import check_create
from volcano_py.sandbox.apiserver.registry.api import Api, Attributes, Result, bare, complete, match_namespace
from volcano_py.sandbox.apiserver.registry.request import Request
from volcano_py.sandbox.apiserver.registry.resources import Resource
from volcano_py.sandbox.apiserver.schema import codec
from volcano_py.sandbox.apiserver.storage.store import ADDED

GENERATE_TRIES = 8


async def create(api: Api, request: Request) -> Result:
    """The created object, or a StatusError."""
    obj = api.decode_body(request)
    return await create_object(api, request, obj)


async def create_object(
    api: Api, request: Request, obj: dict[str, Any], entries: list[dict[str, Any]] | None = None
) -> Result:
    """Create a decoded object; `entries` are managedFields that are already computed (server-side apply)."""
    resource = request.resource
    strategy = resource.strategy
    meta = obj.get("metadata")
    if meta is None:
        meta = obj["metadata"] = {}
    match_namespace(request, meta)
    if request.name and meta.get("name") and meta["name"] != request.name and request.verb != "create":
        text = f"the name of the object ({meta['name']}) does not match the name on the URL ({request.name})"
        raise errors.bad_request(text)
    if meta.get("resourceVersion"):
        if request.verb == "create":
            text = "resourceVersion should not be set on objects to be created"
            raise errors.StatusError(500, "", text)
        del meta["resourceVersion"]
    for system_field in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "creationTimestamp", "uid"):
        meta.pop(system_field, None)
    warn_duplicate_owners(request, meta)
    stamp = metadata.now()
    if entries is not None:
        meta["managedFields"] = entries
    else:
        managed.update(
            resource.type,
            empty(resource),
            obj,
            manager=request.manager,
            api_version=resource.api_version,
            subresource=request.subresource,
            time=stamp,
            created=True,
            reset=paths(strategy.reset_fields),
        )
    if resource.namespaced:
        check_create(api, request, meta.get("name", ""))
    builtin_admission = strategy.admit_create
    if builtin_admission is not None:
        builtin_admission(api, obj, request)
    if not meta.get("name") and meta.get("generateName"):
        base = meta["generateName"]
        for _ in range(GENERATE_TRIES):
            meta["name"] = metadata.generated(base)
            if resource.collection.get(meta.get("namespace", ""), meta["name"]) is None:
                break
    if api.admits(resource):
        attributes = Attributes("CREATE", request, orjson.loads(orjson.dumps(complete(resource, obj))), None)
        await api.admit("mutating", attributes)
        assert attributes.obj is not None
        obj = renormalised(resource, attributes.obj)
        meta = obj["metadata"]
    if strategy.authorize is not None:
        strategy.authorize(api, obj, None, request)
    meta["uid"] = metadata.new_uid()
    meta["creationTimestamp"] = stamp
    if strategy.has_generation:
        meta["generation"] = 1
    if strategy.has_status:
        clear_status(resource, obj)
    strategy.prepare_create(obj, request)
    builtin = resource.custom is None
    causes = metadata.validate(meta, resource.namespaced, strategy.name_errors, builtin=builtin)
    causes += strategy.validate_create(obj, request)
    if causes:
        raise errors.invalid(resource.error_group, resource.kind, meta.get("name", ""), causes)
    for warning in strategy.warnings(obj, None):
        request.warn(warning)
    if not builtin:
        for warning in metadata.finalizer_warnings(meta.get("finalizers") or []):
            request.warn(warning)
    if request.verb != "create":  # by an update or an apply of a missing object
        authorization.require_create(api, authorization.access_of(request))
    if api.admits(resource):
        await api.admit("validating", Attributes("CREATE", request, complete(resource, obj), None))
    if resource.collection.get(meta.get("namespace", ""), meta["name"]) is not None:
        raise errors.already_exists(resource.group, resource.plural, meta["name"])
    return Result(resource, api.commit(request, ADDED, obj), 201)


def clear_status(resource: Resource, obj: dict[str, Any]) -> None:
    """The status of a new object: none for custom resources, the empty struct for built-in ones."""
    obj.pop("status", None)
    if resource.custom is None:
        field = resource.type.fields.get("status")
        if field is not None and field.always:
            obj["status"] = codec.zero(field.type, field.pointer)


def empty(resource: Resource) -> dict[str, Any]:
    """The base object for the computation of the owners of a new object's fields."""
    if resource.custom is not None:
        return {"metadata": {}}
    made: dict[str, Any] = codec.normalise(resource.type, {}, codec.Unknown())
    return made


def renormalised(resource: Resource, obj: dict[str, Any]) -> dict[str, Any]:
    """An object that admission may have changed, converted to canonical form."""
    obj = bare(resource, obj)
    if resource.custom is not None or resource.to_stored is not None:
        return obj
    out: dict[str, Any] = codec.normalise(resource.type, obj, codec.Unknown())
    resource.strategy.default(out)
    return out


def paths(dotted: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """`("status", "metadata.labels")` as paths of a field set."""
    return tuple(tuple(f"f:{part}" for part in path.split(".")) for path in dotted)


def warn_duplicate_owners(request: Request, meta: dict[str, Any]) -> None:
    """Remove duplicate owners, with a warning."""
    owners = meta.get("ownerReferences")
    if not owners or len(owners) < 2:
        return
    kept: list[dict[str, Any]] = []
    for owner in owners:
        if owner not in kept:
            kept.append(owner)
        else:
            text = (
                ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, "
                "and may reject such requests as early as 1.24; please fix your requests; "
                f"duplicate UID(s) observed: {owner.get('uid')}"
            )
            request.warn(text)
    meta["ownerReferences"] = kept
