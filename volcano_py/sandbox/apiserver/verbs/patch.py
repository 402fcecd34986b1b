"""PATCH in its four kinds; server-side apply may also create."""

from __future__ import annotations

from typing import Any

import orjson

from volcano_py.sandbox.apiserver import apply as server_side
from volcano_py.sandbox.apiserver import bodies, errors, fieldsets, managed, metadata, patch, strategic
from volcano_py.sandbox.apiserver.api import Api, Result, StrictError, complete
from volcano_py.sandbox.apiserver.bodies import ParseError
from volcano_py.sandbox.apiserver.request import Request, flag
from volcano_py.sandbox.apiserver.verbs.create import create_object, paths
from volcano_py.sandbox.apiserver.verbs.update import change_object

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
    """The patched object through the decoder; what fails here is a 422 on `patch`."""
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
    """The 422 for a patch whose outcome is no object of the kind."""
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
    config_set_source = {k: v for k, v in config.items() if k not in ("apiVersion", "kind")}
    unknown = undeclared(resource.type, config_set_source)
    if unknown:
        name = f"{request.namespace}/{request.name}" if request.namespace else f"/{request.name}"
        del name
        gvk = f"{resource.group}/{resource.version}, Kind={resource.kind}"
        text = "; ".join(f"{path}: field not declared in schema" for path in unknown)
        message = f"failed to create typed patch object ({request.namespace}/{request.name}; {gvk}): {text}"
        raise errors.StatusError(500, "", message)
    if config.get("metadata", {}).get("managedFields"):
        raise errors.bad_request("metadata.managedFields must be nil")
    force = flag(request.query, "force")
    subresource = request.subresource
    stamp = metadata.now()
    key: managed.Key = (request.manager, "Apply", resource.api_version, subresource)
    reset = paths(
        resource.strategy.reset_status_fields if subresource == "status" else resource.strategy.reset_fields
    )
    entry = resource.collection.get(request.namespace, request.name)
    if entry is None:
        if subresource:
            raise errors.not_found(resource.group, resource.plural, request.name)
        uid = (config.get("metadata") or {}).get("uid")
        if uid:
            text = (
                f"Precondition failed: UID in precondition: {uid}, UID in object meta: "
            )
            raise errors.conflict(resource.group, resource.plural, request.name, text)
        applied = managed.strip(fieldsets.from_object(resource.type, config_set_source))
        if reset:
            applied = fieldsets.remove_paths(applied, reset)
        entries = managed.write({key: managed.Manager(applied, stamp)})
        fresh = {**config, "metadata": {**(config.get("metadata") or {}), "name": request.name}}
        obj = _decoded(api, request, fresh)
        return await create_object(api, request, obj, entries)
    uid = (config.get("metadata") or {}).get("uid", "")

    def change(old: Object) -> Object:
        live = complete(resource, old)
        live_bare = {k: v for k, v in live.items() if k not in ("apiVersion", "kind")}
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
        new = _decoded(api, request, {**merged, "apiVersion": resource.api_version, "kind": resource.kind})
        shown = {k: v for k, v in complete(resource, new).items() if k not in ("apiVersion", "kind")}
        server_side.resolve_conflicts(resource.type, live_bare, shown, managers, key, force, reset)
        rows = managed.write(managers)
        new["metadata"].pop("managedFields", None)
        if rows:
            new["metadata"]["managedFields"] = rows
        return new

    return await change_object(api, request, change, uid=uid, tracked=False)


def _decoded(api: Api, request: Request, value: Object) -> Object:
    try:
        return api.decode(request, value)
    except StrictError as error:
        raise errors.bad_request(str(error)) from None


def _check_config(request: Request, config: Object) -> None:
    resource = request.resource
    version, kind = config.get("apiVersion"), config.get("kind")
    if not version or not kind:
        missing = "Kind" if not kind else "apiVersion"
        raise errors.bad_request(f"Object '{missing}' is missing in the applied configuration")
    if version != resource.api_version or kind != resource.kind:
        text = (
            f"invalid object type: {version}, Kind={kind}"
            if kind != resource.kind
            else f"Incorrect version specified in apply patch. Specified patch version: {version}, expected: {resource.api_version}"
        )
        raise errors.bad_request(text)
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


def undeclared(type_: Any, value: Any, path: str = "") -> list[str]:
    """Fields of an applied configuration that the schema does not have."""
    out: list[str] = []
    if isinstance(value, dict):
        if type_.kind == "struct":
            for key, item in value.items():
                field = type_.fields.get(key)
                if field is None:
                    if not type_.open:
                        out.append(f"{path}.{key}")
                else:
                    out.extend(undeclared(field.type, item, f"{path}.{key}"))
        elif type_.kind == "map" and type_.elem is not None:
            for key, item in value.items():
                out.extend(undeclared(type_.elem, item, f"{path}.{key}"))
    elif isinstance(value, list) and type_.kind == "list" and type_.elem is not None:
        for index, item in enumerate(value):
            out.extend(undeclared(type_.elem, item, f"{path}[{index}]"))
    return out
