"""PATCH in its four types; server-side apply may also create objects. Kubernetes: handlers/patch.go."""

from __future__ import annotations

from typing import Any

import orjson

from volcano_py.sandbox.apiserver.apimachinery import errors, metadata
from volcano_py.sandbox.apiserver.apply import fieldsets, managed, patch, server_side, strategic
from volcano_py.sandbox.apiserver.endpoints.verbs.create import create_object, paths
from volcano_py.sandbox.apiserver.endpoints.verbs.update import change_object
from volcano_py.sandbox.apiserver.registry.api import Api, Result, StrictError, complete
from volcano_py.sandbox.apiserver.registry.request import Request, flag
from volcano_py.sandbox.apiserver.schema.structural import misplaced_nulls
from volcano_py.sandbox.apiserver.schema.types import Type
from volcano_py.sandbox.apiserver.serializer import bodies
from volcano_py.sandbox.apiserver.serializer.bodies import ParseError

Object = dict[str, Any]

BUILTIN_TYPES = (patch.JSON_PATCH, patch.MERGE_PATCH, patch.STRATEGIC_PATCH, patch.APPLY_PATCH)
CUSTOM_TYPES = (patch.JSON_PATCH, patch.MERGE_PATCH, patch.APPLY_PATCH)


def patch_type(request: Request) -> str:
    """The media type of the patch; 415 for others."""
    kind = bodies.media_type(request.content_type)
    if request.resource.custom is not None:
        if kind not in CUSTOM_TYPES:
            raise bodies.unsupported_media_type(", ".join(CUSTOM_TYPES))
    elif kind not in BUILTIN_TYPES:
        raise errors.StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})
    return kind


async def patch_object(api: Api, request: Request) -> Result:
    """Apply the patch in the request's body."""
    kind = patch_type(request)
    if kind == patch.APPLY_PATCH:
        return await apply(api, request)
    change = change_function(api, request, kind)
    return await change_object(api, request, change)


def change_function(api: Api, request: Request, kind: str) -> Any:
    """From the stored object to the patched one."""
    resource = request.resource
    document = _document(request, kind)

    def change(old: Object) -> Object:
        current = complete(resource, old)
        if kind == patch.JSON_PATCH:
            patched = patch.json_patch(current, document)
        elif kind == patch.MERGE_PATCH:
            patched = patch.merge_patch(current, document)
        else:
            try:
                patched = strategic.apply(current, document, resource.type)
            except strategic.StrategicError as error:
                raise errors.StatusError(500, "", str(error)) from None
            except (AttributeError, TypeError):
                raise errors.bad_request("the patch does not fit the object's types") from None
        if not isinstance(patched, dict):
            raise patch.unprocessable()
        return decode_patched(api, request, patched, document if kind == patch.STRATEGIC_PATCH else None)

    return change


def _document(request: Request, kind: str) -> Any:
    try:
        document = bodies.parse_json(request.body, None)
    except ParseError as error:
        raise errors.bad_request(f"error decoding patch: {error}") from None
    if kind != patch.JSON_PATCH and not isinstance(document, dict):
        what = {list: "array", str: "string", type(None): "null"}.get(type(document), "number")
        text = f"error decoding patch: json: cannot unmarshal {what} into Go value of type map[string]interface {{}}"
        raise errors.bad_request(text)
    return document


def decode_patched(api: Api, request: Request, patched: Object, document: Any) -> Object:
    """Decode the patched object; errors are a 422 on `patch`."""
    resource = request.resource
    shown = document if document is not None else patched
    name, namespace = request.name, request.namespace
    if patched.get("apiVersion") != resource.api_version or patched.get("kind") != resource.kind:
        if not patched.get("apiVersion") or not patched.get("kind"):
            raise patch.unprocessable()
        text = (
            f"the API version or kind in the data ({patched['apiVersion']}, {patched['kind']}) does not match "
            f"the expected ({resource.api_version}, {resource.kind})"
        )
        raise invalid_patch(shown, text)
    try:
        new = api.decode(request, patched)
    except StrictError as error:
        raise invalid_patch(shown, str(error)) from None
    except errors.StatusError as error:
        if error.code == 400 and " cannot be handled as a " in error.message:
            text = error.message.split(": ", 1)[1]
            raise invalid_patch(shown, text) from None
        raise
    meta = new["metadata"]
    if meta.get("name", name) != name:
        text = f"the name of the object ({meta['name']}) does not match the name on the URL ({name})"
        raise errors.bad_request(text)
    if not meta.get("name"):
        text = f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
        raise errors.bad_request(text)
    if resource.namespaced and meta.get("namespace", namespace) != namespace:
        text = "the namespace of the provided object does not match the namespace sent on the request"
        raise errors.bad_request(text)
    if resource.namespaced:
        meta["namespace"] = namespace
    return new


def invalid_patch(shown: Any, text: str) -> errors.StatusError:
    """The 422 for a patch whose result is not an object of the kind."""
    value = orjson.dumps(shown).decode()
    return errors.invalid("", "", "", [errors.invalid_value("patch", value, text)])


# --- server-side apply -----------------------------------------------------------------------------------------------


async def apply(api: Api, request: Request) -> Result:
    """Create or merge an applied configuration."""
    resource = request.resource
    duplicates: list[str] = []
    try:
        config = bodies.parse_yaml(request.body, duplicates)
    except ParseError as error:
        raise errors.bad_request(f"error decoding YAML: {error}") from None
    if not isinstance(config, dict):
        raise errors.bad_request("error decoding YAML: the configuration is not an object")
    _check_config(request, config)
    if config.get("metadata") is None:
        config = {**config, "metadata": {}}
    config_set_source = {k: v for k, v in config.items() if k not in ("apiVersion", "kind")}
    faults = typed_faults(resource.type, config_set_source)
    if faults:
        gvk = f"{resource.group}/{resource.version}, Kind={resource.kind}"
        given = config["metadata"]
        where = f"({given.get('namespace', '')}/{given.get('name', '')}; {gvk})"
        message = f"failed to create typed patch object {where}: {faults[0] if len(faults) == 1 else faults}"
        raise errors.StatusError(500, "", message)
    if (config.get("metadata") or {}).get("managedFields"):
        raise errors.bad_request("metadata.managedFields must be nil")
    force = flag(request.query, "force")
    subresource = request.subresource
    stamp = metadata.now()
    key: managed.Key = (request.manager, "Apply", resource.api_version, subresource)
    reset = paths(resource.strategy.reset_status_fields if subresource == "status" else resource.strategy.reset_fields)
    entry = resource.collection.get(request.namespace, request.name)
    if entry is None:
        if subresource:
            raise errors.not_found(resource.group, resource.plural, request.name)
        uid = (config.get("metadata") or {}).get("uid")
        if uid:
            text = f"Precondition failed: UID in precondition: {uid}, UID in object meta: "
            raise errors.conflict(resource.group, resource.plural, request.name, text)
        applied = managed.strip(fieldsets.from_object(resource.type, config_set_source))
        if reset:
            applied = fieldsets.remove_paths(applied, reset)
        entries = managed.write({key: managed.Manager(applied, stamp)})
        fresh = {**config, "metadata": {**(config.get("metadata") or {}), "name": request.name}}
        obj = _decoded(api, request, fresh)
        return await create_object(api, request, obj, entries)

    def change(old: Object) -> Object:
        live = complete(resource, old)
        live_bare = {k: v for k, v in live.items() if k not in ("apiVersion", "kind")}
        last_applied = _last_applied(live_bare) if request.manager == "kubectl" else None
        allowed = fieldsets.from_object(resource.type, last_applied) if last_applied is not None else None
        merged, managers, _ = server_side.apply(
            resource.type,
            live_bare,
            config_set_source,
            manager=request.manager,
            api_version=resource.api_version,
            subresource=subresource,
            time=stamp,
            force=force,
            reset=reset,
        )
        merged["metadata"].pop("managedFields", None)
        if resource.custom is not None:
            nulls = misplaced_nulls(merged, resource.custom.schema)
            if nulls:
                raise errors.invalid(resource.group, resource.kind, request.name, nulls)
        server_side.resolve_conflicts(resource.type, live_bare, merged, managers, key, force, reset, allowed)
        if last_applied is not None:
            _set_last_applied(merged, config)
        new = _decoded(api, request, {**merged, "apiVersion": resource.api_version, "kind": resource.kind})
        rows = managed.write(managers)
        new["metadata"].pop("managedFields", None)
        if rows:
            new["metadata"]["managedFields"] = rows
        return new

    return await change_object(api, request, change, tracked=False)


def _decoded(api: Api, request: Request, value: Object) -> Object:
    try:
        return api.decode(request, value)
    except StrictError as error:
        raise errors.bad_request(str(error)) from None


def _check_config(request: Request, config: Object) -> None:
    resource = request.resource
    version, kind = config.get("apiVersion"), config.get("kind")
    if not kind:
        raise errors.bad_request("Object 'Kind' is missing in the applied configuration")
    if version != resource.api_version or kind != resource.kind:
        group, _, short = str(version or "").rpartition("/")
        raise errors.bad_request(f"invalid object type: {group}/{short}, Kind={kind}")
    meta = config.get("metadata") or {}
    if not isinstance(meta, dict):
        raise errors.bad_request("metadata must be an object")
    if meta.get("name", request.name) != request.name:
        text = f"the name of the object ({meta['name']}) does not match the name on the URL ({request.name})"
        raise errors.bad_request(text)
    if resource.namespaced and meta.get("namespace", request.namespace) != request.namespace:
        raise errors.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def _last_applied(live: Object) -> Object | None:
    """The last configuration of a client-side apply in the annotation; None without it."""
    text = (live["metadata"].get("annotations") or {}).get(_LAST_APPLIED)
    try:
        value = orjson.loads(text) if text else None
    except orjson.JSONDecodeError:
        return None
    if not isinstance(value, dict):
        return None
    return {key: item for key, item in value.items() if key not in ("apiVersion", "kind")}


def _set_last_applied(merged: Object, config: Object) -> None:
    """Update the annotation, so that a return to client-side apply is possible."""
    text = orjson.dumps(config, option=orjson.OPT_SORT_KEYS).decode() + "\n"
    meta = merged["metadata"] = dict(merged["metadata"])
    meta["annotations"] = {**(meta.get("annotations") or {}), _LAST_APPLIED: text}


_NUMERIC = ("int32", "int64", "double")


def typed_faults(type_: Type, value: Any, path: str = "") -> list[str]:
    """Why a configuration does not match the schema, before anything is merged."""
    kind = type_.kind
    if value is None:
        return []
    if kind in ("struct", "map"):
        if not isinstance(value, dict):
            return [f"{path}: expected map, got {value!r}"]
        out: list[str] = []
        for key, item in value.items():
            field = type_.fields.get(key)
            if field is not None:
                out.extend(typed_faults(field.type, item, f"{path}.{key}"))
            elif kind == "map" and type_.elem is not None:
                out.extend(typed_faults(type_.elem, item, f"{path}.{key}"))
            elif not type_.open:
                out.append(f"{path}.{key}: field not declared in schema")
        return out
    if kind == "list":
        if not isinstance(value, list):
            return [f"{path}: expected list, got {value!r}"]
        out = []
        seen: set[str] = set()
        for index, item in enumerate(value):
            at = f"{path}[{index}]"
            if not type_.atomic:
                name = fieldsets.element(type_, item)
                if name in seen:
                    shown = server_side.leaf_paths({name: {}})[0]
                    out.append(f"{path}: duplicate entries for key {shown}")
                seen.add(name)
                at = path + server_side.leaf_paths({name: {}})[0]
            if type_.elem is not None:
                out.extend(typed_faults(type_.elem, item, at))
        return out
    if kind in ("string", "time", "microtime", "bytes") and not isinstance(value, str):
        return [f"{path}: expected string, got {value!r}"]
    if kind in _NUMERIC and (isinstance(value, bool) or not isinstance(value, int | float)):
        return [f"{path}: expected numeric (int or float), got {type(value).__name__}"]
    if kind == "bool" and not isinstance(value, bool):
        return [f"{path}: expected boolean, got {value!r}"]
    return []
