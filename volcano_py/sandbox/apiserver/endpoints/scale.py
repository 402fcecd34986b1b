"""The scale subresource: the replicas of an object of any kind. Kubernetes: the ScaleREST storages."""

from __future__ import annotations

from typing import Any

import orjson

from volcano_py.sandbox.apiserver.apimachinery import errors, metadata
from volcano_py.sandbox.apiserver.apply import fieldsets, managed, patch, server_side
from volcano_py.sandbox.apiserver.endpoints.subresources import entry_of
from volcano_py.sandbox.apiserver.endpoints.verbs.patch import invalid_patch, patch_type
from volcano_py.sandbox.apiserver.endpoints.verbs.update import change_object
from volcano_py.sandbox.apiserver.printers import jsonpath
from volcano_py.sandbox.apiserver.printers.columns.workloads import selector_text
from volcano_py.sandbox.apiserver.registry.api import Api, Plain, Result
from volcano_py.sandbox.apiserver.registry.request import Request, flag
from volcano_py.sandbox.apiserver.schema import codec
from volcano_py.sandbox.apiserver.schema.types import builtin
from volcano_py.sandbox.apiserver.serializer.bodies import read_object
from volcano_py.sandbox.apiserver.storage.store import Entry

Object = dict[str, Any]

_SEEN: fieldsets.Set = {"f:spec": {"f:replicas": {}}}  # the field in conflicts, for any path in the object


def install(api: Api) -> None:
    api.subresources["*", "scale"] = scale


def scale_of(request: Request, entry: Entry) -> Object:
    """The Scale of an object."""
    resource = request.resource
    obj = entry.load()
    meta = obj["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    out: Object = {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: meta[key] for key in kept if key in meta},
        "spec": {},
        "status": {"replicas": 0},
    }
    if resource.custom is not None:
        paths = resource.custom.subresources["scale"]
        wanted = _number(obj, paths["specReplicasPath"])
        if wanted is None:
            text = f"the spec replicas field {paths['specReplicasPath']!r} does not exist"
            raise errors.internal(text.replace("'", '"'))
        if wanted:
            out["spec"]["replicas"] = wanted
        out["status"]["replicas"] = _number(obj, paths["statusReplicasPath"]) or 0
        label_path = paths.get("labelSelectorPath")
        found = jsonpath.find(label_path, obj) if label_path else []
        if found and isinstance(found[0], str) and found[0]:
            out["status"]["selector"] = found[0]
        return out
    spec, status = obj["spec"], obj.get("status") or {}
    if spec.get("replicas"):
        out["spec"]["replicas"] = spec["replicas"]
    out["status"]["replicas"] = status.get("replicas", 0)
    if isinstance(spec.get("selector"), dict):
        selector = spec["selector"]
        if resource.plural == "replicationcontrollers":
            selector = {"matchLabels": selector}
        out["status"]["selector"] = selector_text(selector)
    return out


def _number(obj: Object, path: str) -> int | None:
    found = jsonpath.find(path, obj)
    return found[0] if found and isinstance(found[0], int) else None


async def scale(api: Api, request: Request) -> Result | Plain:
    """GET, PUT and PATCH of a Scale."""
    resource = request.resource
    entry = entry_of(request)
    if request.verb == "get":
        return Plain(scale_of(request, entry))
    current = scale_of(request, entry)
    if request.verb == "patch":
        kind = patch_type(request)
        if kind == patch.APPLY_PATCH:
            return await _apply(api, request, entry)
        try:
            document = orjson.loads(request.body)
        except orjson.JSONDecodeError:
            raise errors.bad_request("error decoding patch: unexpected end of JSON input") from None
        if kind == patch.JSON_PATCH:
            raw = patch.json_patch(current, document)
        else:
            raw = patch.merge_patch(current, document)
    else:
        raw = read_object(request.body, request.content_type, "Scale", None)
    try:
        wanted = codec.normalise(builtin("autoscaling.v1.Scale"), raw, codec.Unknown())
    except codec.DecodeError as error:
        if request.verb == "patch":
            raise invalid_patch(raw, str(error)) from None
        raise errors.bad_request(f'Scale in version "v1" cannot be handled as a Scale: {error}') from None
    name = wanted["metadata"].get("name", request.name)
    if name != request.name:
        text = f"the name of the object ({name}) does not match the name on the URL ({request.name})"
        raise errors.bad_request(text)
    replicas = wanted["spec"].get("replicas", 0)
    if replicas < 0 and resource.custom is not None:
        path = resource.custom.subresources["scale"]["specReplicasPath"]
        cause = errors.invalid_value(path, replicas, "should be a non-negative integer")
        raise errors.invalid(resource.group, resource.kind, request.name, [cause])
    if replicas < 0:
        cause = errors.invalid_value("spec.replicas", replicas, "must be greater than or equal to 0")
        raise errors.invalid("autoscaling", "Scale", request.name, [cause])
    version = wanted["metadata"].get("resourceVersion", "")

    def change(obj: Object) -> Object:
        if resource.custom is not None:
            _put(obj, resource.custom.subresources["scale"]["specReplicasPath"], replicas)
        else:
            obj["spec"] = {**obj["spec"], "replicas": replicas}
        if version:
            obj["metadata"]["resourceVersion"] = version
        copy: Object = orjson.loads(orjson.dumps(obj))
        return copy

    uid = wanted["metadata"].get("uid", "")
    await change_object(api, request, lambda old: change(orjson.loads(orjson.dumps(old))), uid=uid)
    return Plain(scale_of(request, entry_of(request)))


def _put(obj: Object, path: str, value: int) -> None:
    *parents, last = [part for part in path.split(".") if part]
    for part in parents:
        obj = obj.setdefault(part, {})
    obj[last] = value


def _path(request: Request) -> str:
    custom = request.resource.custom
    return custom.subresources["scale"]["specReplicasPath"] if custom is not None else ".spec.replicas"


async def _apply(api: Api, request: Request, entry: Entry) -> Plain:
    """Server-side apply of a Scale: its only field is owned like any other field of the object."""
    config = read_object(request.body, "application/yaml", "Scale", None)
    if config.get("kind") != "Scale" or config.get("apiVersion") != "autoscaling/v1":
        given = f"{config.get('apiVersion')}, Kind={config.get('kind')}"
        raise errors.bad_request(f"invalid object type: {given}")
    wanted = (config.get("spec") or {}).get("replicas")
    if isinstance(wanted, bool) or not isinstance(wanted, int | None):
        raise errors.bad_request("failed to create typed patch object: .spec.replicas: expected numeric")
    if wanted is None or wanted < 0:
        cause = errors.invalid_value("spec.replicas", wanted or 0, "must be greater than or equal to 0")
        raise errors.invalid("autoscaling", "Scale", request.name, [cause])
    path = _path(request)
    fields: fieldsets.Set = {}
    for part in reversed([part for part in path.split(".") if part]):
        fields = {f"f:{part}": fields}
    key: managed.Key = (request.manager, "Apply", request.resource.api_version, "scale")
    stamp = metadata.now()

    def change(obj: Object) -> Object:
        out: Object = orjson.loads(orjson.dumps(obj))
        managers = managed.read(out["metadata"].get("managedFields"))
        owners = [other for other, held in managers.items() if fieldsets.intersection(held.fields, fields)]
        if _number(out, path) != wanted:
            others = [other for other in owners if other != key]
            if not owners:
                others = [("before-first-apply", "Update", "autoscaling/v1", "scale")]
            if others and not flag(request.query, "force"):
                raise server_side.conflict_error([(other, _SEEN) for other in others])
            for other in others:
                if other in managers:
                    managers[other].fields = fieldsets.difference(managers[other].fields, fields)
            _put(out, path, wanted)
        if key not in managers:
            managers[key] = managed.Manager(fields, stamp)
        out["metadata"]["managedFields"] = managed.write(managers)
        return out

    await change_object(api, request, change, tracked=False)
    return Plain(scale_of(request, entry_of(request)))
