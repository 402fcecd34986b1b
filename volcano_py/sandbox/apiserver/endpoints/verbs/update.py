"""PUT and PATCH: change an object, with optimistic concurrency. Kubernetes: handlers/update.go and Store.Update."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from volcano_py.sandbox.apiserver.apimachinery import errors, metadata
from volcano_py.sandbox.apiserver.apply import managed
from volcano_py.sandbox.apiserver.endpoints.verbs.create import (
    create_object,
    paths,
    renormalised,
    warn_duplicate_owners,
)
from volcano_py.sandbox.apiserver.registry.api import Api, Attributes, Result, complete, match_namespace
from volcano_py.sandbox.apiserver.registry.request import Request
from volcano_py.sandbox.apiserver.registry.resources import Resource
from volcano_py.sandbox.apiserver.storage.store import DELETED, MODIFIED, Entry

Object = dict[str, Any]
Change = Callable[[Object], Object]

TRIES = 5


async def update(api: Api, request: Request) -> Result:
    """PUT: replace an object (or its status)."""
    new = api.decode_body(request)
    meta = new.setdefault("metadata", {})
    name = meta.get("name", "")
    if not name:
        meta["name"] = request.name
        if request.resource.custom is None or not name:
            pass
    elif name != request.name:
        text = f"the name of the object ({name}) does not match the name on the URL ({request.name})"
        raise errors.bad_request(text)
    match_namespace(request, meta)
    encoded = orjson.dumps(new)

    def change(_: Object) -> Object:
        copy: Object = orjson.loads(encoded)  # a new copy for each attempt
        return copy

    return await change_object(api, request, change, uid=meta.get("uid", ""), create=new)


async def change_object(
    api: Api,
    request: Request,
    change: Change,
    *,
    uid: str = "",
    create: Object | None = None,
    tracked: bool = True,
) -> Result:
    """Read, change, check and write; repeated after a conflict if the change permits it.

    `change` receives a copy of the stored object and returns the new one (with final managedFields if `tracked`
    is false). `create` is stored if the object does not exist and the kind permits that.
    """
    resource = request.resource
    for attempt in range(TRIES):
        entry = resource.collection.get(request.namespace, request.name)
        if entry is None:
            if create is not None and resource.strategy.create_on_update and not request.subresource:
                result = await create_object(api, request, create)
                return result
            raise errors.not_found(resource.group, resource.plural, request.name)
        if uid and uid != entry.uid:
            text = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {entry.uid}"
            raise errors.conflict(resource.group, resource.plural, request.name, text)
        old = entry.load()
        new = change(old)
        expected = new["metadata"].get("resourceVersion", "")
        try:
            return await _write(api, request, entry, old, new, tracked)
        except _Raced:
            # a writer with a resourceVersion has failed; others retry with the newer object
            if (expected and create is not None) or attempt == TRIES - 1:
                name = request.name
                raise errors.conflict(resource.group, resource.plural, name, errors.MODIFIED) from None
    raise AssertionError("unreachable")


class _Raced(Exception):
    """The object changed during admission."""


async def _write(api: Api, request: Request, entry: Entry, old: Object, new: Object, tracked: bool) -> Result:
    resource = request.resource
    strategy = resource.strategy
    before: Object = old
    status = request.subresource == "status"
    meta = new["metadata"]
    warn_duplicate_owners(request, meta)
    if tracked:
        managed.update(
            resource.type,
            before,
            new,
            manager=request.manager,
            api_version=resource.api_version,
            subresource=request.subresource,
            time=metadata.now(),
            created=False,
            reset=paths(strategy.reset_status_fields if status else strategy.reset_fields),
        )
    if strategy.admit_update is not None and not request.subresource:
        strategy.admit_update(api, new, before, request)
    if api.admits(resource):
        attributes = Attributes("UPDATE", request, complete(resource, new), complete(resource, before))
        await api.admit("mutating", attributes)
        assert attributes.obj is not None
        new = renormalised(resource, attributes.obj)
        meta = new["metadata"]
    if strategy.authorize is not None and not request.subresource:
        strategy.authorize(api, new, before, request)
    _check_revision(request, entry, meta)
    _carry_over(meta, before["metadata"])
    if status:
        prepare_status(resource, new, before, request)
        causes = metadata.validate_update(meta, before["metadata"])
        causes += strategy.validate_status(new, before, request)
    else:
        if strategy.has_status:
            _keep_status(new, before)
        strategy.prepare_update(new, before, request)
        if strategy.has_generation and spec_changed(resource, new, before):
            meta["generation"] = before["metadata"].get("generation", 0) + 1
        causes = _metadata_causes(resource, meta, before["metadata"])
        causes += strategy.validate_update(new, before, request)
    if causes:
        raise errors.invalid(resource.error_group, resource.kind, meta.get("name", ""), causes)
    for warning in strategy.warnings(new, before):
        request.warn(warning)
    if resource.custom is not None and meta.get("finalizers") != before["metadata"].get("finalizers"):
        for warning in metadata.finalizer_warnings(meta.get("finalizers") or []):
            request.warn(warning)
    if api.admits(resource):
        attributes = Attributes("UPDATE", request, complete(resource, new), complete(resource, before))
        await api.admit("validating", attributes)
    if resource.collection.get(request.namespace, request.name) is not entry:
        raise _Raced
    if new == before or managed.without_times(new) == managed.without_times(before):
        return Result(resource, entry.tail)
    if deletes(meta, before["metadata"]):
        # the response is the last state of the object, the event has the revision of the deletion
        shown = orjson.dumps(new)[1:]
        api.commit(request, DELETED, new)
        return Result(resource, shown)
    return Result(resource, api.commit(request, MODIFIED, new))


def _check_revision(request: Request, entry: Entry, meta: Object) -> None:
    resource = request.resource
    given = meta.get("resourceVersion", "")
    if not given or given == "0":
        if not resource.strategy.unconditional_update:
            cause = errors.invalid_value("metadata.resourceVersion", 0, "must be specified for an update")
            cause.message = "Invalid value: 0: must be specified for an update"
            raise errors.invalid(resource.group, resource.plural, request.name, [cause])
    elif given != str(entry.rv):
        if not given.isdigit():
            text = f'metadata.resourceVersion: Invalid value: "{given}": strconv.ParseUint: parsing "{given}": '
            raise errors.StatusError(500, "", text + "invalid syntax")
        raise errors.conflict(resource.group, resource.plural, request.name, errors.MODIFIED)
    meta["resourceVersion"] = str(entry.rv)


def _carry_over(meta: Object, old: Object) -> None:
    """Set fields of metadata that a writer may leave out, and those that it cannot remove."""
    if not meta.get("uid"):
        meta["uid"] = old.get("uid")
    meta["creationTimestamp"] = old.get("creationTimestamp")
    if old.get("deletionTimestamp"):
        meta["deletionTimestamp"] = old["deletionTimestamp"]
        if "deletionGracePeriodSeconds" in old and "deletionGracePeriodSeconds" not in meta:
            meta["deletionGracePeriodSeconds"] = old["deletionGracePeriodSeconds"]
    if "generation" in old:
        meta["generation"] = old["generation"]
    else:
        meta.pop("generation", None)
    meta.pop("selfLink", None)


def _metadata_causes(resource: Resource, meta: Object, old: Object) -> list[errors.Cause]:
    causes = metadata.validate_update(meta, old)
    if meta.get("labels") != old.get("labels"):
        causes += metadata.labels_causes(meta.get("labels") or {}, "metadata.labels")
    if meta.get("annotations") != old.get("annotations"):
        causes += metadata.annotations_causes(meta.get("annotations") or {}, "metadata.annotations")
    if meta.get("finalizers") != old.get("finalizers"):
        finalizers = meta.get("finalizers") or []
        causes += metadata.finalizers_causes(finalizers, "metadata.finalizers", resource.custom is None)
    if meta.get("ownerReferences") != old.get("ownerReferences"):
        owners = metadata.owners_causes(meta.get("ownerReferences") or [], "metadata.ownerReferences")
        causes += owners
    return causes


def prepare_status(resource: Resource, new: Object, old: Object, request: Request) -> None:
    """Restrict a write of the status subresource to the status (for built-in kinds also metadata)."""
    strategy = resource.strategy
    if strategy.prepare_status is not None:
        strategy.prepare_status(new, old, request)
    elif resource.custom is not None:
        status = new.get("status")
        entries = new["metadata"].get("managedFields")
        for key in list(new):
            if key not in old:
                del new[key]
        new.update(old)
        new.pop("status", None)
        if status is not None:
            new["status"] = status
        new["metadata"] = dict(old["metadata"])
        new["metadata"].pop("managedFields", None)
        if entries:
            new["metadata"]["managedFields"] = entries
    else:
        for key in ("spec",):
            if key in old:
                new[key] = old[key]
            else:
                new.pop(key, None)


def _keep_status(new: Object, old: Object) -> None:
    if "status" in old:
        new["status"] = old["status"]
    else:
        new.pop("status", None)


def spec_changed(resource: Resource, new: Object, old: Object) -> bool:
    """Whether a change counts as a new generation: anything but metadata and status."""
    with_status = resource.custom is not None and not resource.strategy.has_status
    ignored = ("metadata",) if with_status else ("metadata", "status")
    keys = {key for key in (*new, *old) if key not in ignored}
    return any(new.get(key) != old.get(key) for key in keys)


def deletes(meta: Object, old: Object) -> bool:
    """Whether an update removes the last finalizer of a terminating object."""
    if meta.get("finalizers") or not old.get("deletionTimestamp"):
        return False
    return not old.get("deletionGracePeriodSeconds")
