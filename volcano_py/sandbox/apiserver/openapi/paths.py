"""The operations of a resource in OpenAPI v3: their ids, actions, parameters and bodies."""

from __future__ import annotations

from typing import Any

from volcano_py.sandbox.apiserver.registry.resources import Resource, Subresource

Object = dict[str, Any]

_PATCHES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/apply-patch+yaml",
)


def _query(name: str, text: str, kind: str = "string") -> Object:
    return {"name": name, "in": "query", "description": text, "schema": {"type": kind, "uniqueItems": True}}


_PRETTY = _query("pretty", "If 'true', then the output is pretty printed.")
_DRY_RUN = _query("dryRun", "When present, indicates that modifications should not be persisted.")
_MANAGER = _query("fieldManager", "The name of the actor that is making these changes.")
_VALIDATION = _query("fieldValidation", "What to do with unknown or duplicate fields: Ignore, Warn or Strict.")
_FORCE = _query("force", "Take over fields of other managers (apply only).", "boolean")
_LISTING = [
    _query("labelSelector", "Restrict the list by labels."),
    _query("fieldSelector", "Restrict the list by fields."),
    _query("limit", "The maximum number of items to return.", "integer"),
    _query("continue", "The continue token of the last response."),
    _query("resourceVersion", "The revision to serve."),
    _query("resourceVersionMatch", "How resourceVersion is applied."),
    _query("timeoutSeconds", "Time limit of the call.", "integer"),
    _query("watch", "Watch for changes instead.", "boolean"),
    _query("allowWatchBookmarks", "Send BOOKMARK events.", "boolean"),
    _query("sendInitialEvents", "Begin the watch with the current state.", "boolean"),
]
_DELETING = [
    _query("gracePeriodSeconds", "Seconds before the object should be deleted.", "integer"),
    _query("propagationPolicy", "Orphan, Background or Foreground."),
    _query("orphanDependents", "Deprecated: use propagationPolicy.", "boolean"),
]
_PATH_NAME = {"name": "name", "in": "path", "required": True, "schema": {"type": "string", "uniqueItems": True}}
_PATH_NAMESPACE = {**_PATH_NAME, "name": "namespace"}


def _group_words(resource: Resource) -> str:
    group = resource.group or "core"
    parts = group.removesuffix(".k8s.io").split(".") if resource.custom is None else group.split(".")
    words = "".join(part[:1].upper() + part[1:] for part in parts)
    return words + resource.version[:1].upper() + resource.version[1:]


def _operation(
    resource: Resource, verb: str, action: str, suffix: str, parameters: list[Object], schema: str, body: Object | None
) -> Object:
    reference = {"$ref": f"#/components/schemas/{schema}"}
    out: Object = {
        "tags": [_group_words(resource)[:1].lower() + _group_words(resource)[1:]],
        "operationId": f"{verb}{_group_words(resource)}{suffix}",
        "parameters": [*parameters, _PRETTY],
        "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": reference}}}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": {
            "group": resource.group,
            "version": resource.version,
            "kind": resource.kind,
        },
    }
    if body is not None:
        out["requestBody"] = body
    return out


def _body(schema: str, types: tuple[str, ...] = ("*/*",)) -> Object:
    reference = {"schema": {"$ref": f"#/components/schemas/{schema}"}}
    return {"content": dict.fromkeys(types, reference), "required": True}


_META = "io.k8s.apimachinery.pkg.apis.meta.v1."


def operations(resource: Resource, schema: str) -> Object:
    """All paths of a resource."""
    base = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    out: Object = {}
    scope = "Namespaced" if resource.namespaced else ""
    kind = resource.kind
    patches = _PATCHES if resource.custom is not None else (*_PATCHES, "application/strategic-merge-patch+json")
    own = [_PATH_NAMESPACE] if resource.namespaced else []
    at = f"{base}/namespaces/{{namespace}}/{resource.plural}" if resource.namespaced else f"{base}/{resource.plural}"
    verbs = resource.verbs
    write = [_DRY_RUN, _MANAGER, _VALIDATION]
    collection: Object = {}
    list_schema = schema + "List"
    if "list" in verbs:
        collection["get"] = _operation(resource, "list", "list", scope + kind, _LISTING, list_schema, None)
    if "create" in verbs:
        collection["post"] = _operation(resource, "create", "post", scope + kind, write, schema, _body(schema))
    if "deletecollection" in verbs:
        suffix = f"Collection{scope}{kind}"
        collection["delete"] = _operation(
            resource,
            "delete",
            "deletecollection",
            suffix,
            [_DRY_RUN, *_DELETING, *_LISTING],
            _META + "Status",
            _body(_META + "DeleteOptions"),
        )
    if own:
        collection["parameters"] = own
    out[at] = collection
    if resource.namespaced and "list" in verbs:
        everywhere = _operation(resource, "list", "list", kind + "ForAllNamespaces", _LISTING, list_schema, None)
        out[f"{base}/{resource.plural}"] = {"get": everywhere}
    single = _single(resource, schema, scope + kind, verbs, write, patches)
    if single:
        single["parameters"] = [_PATH_NAME, *own]
        out[at + "/{name}"] = single
    for name, sub in resource.subresources.items():
        if name in _CONNECT:
            out.update(_connect(resource, sub, f"{at}/{{name}}/{name}", scope, own))
            continue
        out[f"{at}/{{name}}/{name}"] = {
            **_subresource(resource, sub, schema, scope, write, patches),
            "parameters": [_PATH_NAME, *own],
        }
    return out


def _single(
    resource: Resource, schema: str, suffix: str, verbs: tuple[str, ...], write: list[Object], patches: tuple[str, ...]
) -> Object:
    out: Object = {}
    if "get" in verbs:
        out["get"] = _operation(resource, "read", "get", suffix, [], schema, None)
    if "update" in verbs:
        out["put"] = _operation(resource, "replace", "put", suffix, write, schema, _body(schema))
    if "delete" in verbs:
        out["delete"] = _operation(
            resource,
            "delete",
            "delete",
            suffix,
            [_DRY_RUN, *_DELETING],
            _META + "Status",
            _body(_META + "DeleteOptions"),
        )
    if "patch" in verbs:
        body = _body(_META + "Patch", patches)
        out["patch"] = _operation(resource, "patch", "patch", suffix, [*write, _FORCE], schema, body)
    return out


def _subresource(
    resource: Resource, sub: Subresource, schema: str, scope: str, write: list[Object], patches: tuple[str, ...]
) -> Object:
    title = sub.name[:1].upper() + sub.name[1:]
    suffix = f"{scope}{resource.kind}{title}"
    out = _single(resource, schema, suffix, sub.verbs, write, patches)
    if "create" in sub.verbs:
        out["post"] = _operation(resource, "create", "post", suffix, write, schema, _body(schema))
        out.pop("get", None) if "get" not in sub.verbs else None
    if sub.group is not None or sub.kind != resource.kind:
        for operation in out.values():
            operation["x-kubernetes-group-version-kind"] = {
                "group": resource.group if sub.group is None else sub.group,
                "version": sub.version or resource.version,
                "kind": sub.kind,
            }
    return out


_CONNECT = {
    "attach": ("get", "post"),
    "exec": ("get", "post"),
    "portforward": ("get", "post"),
    "proxy": ("get", "put", "post", "delete", "options", "head", "patch"),
}


def _connect(resource: Resource, sub: Subresource, at: str, scope: str, own: list[Object]) -> Object:
    """Subresources that are streams and proxies: they have operations without bodies."""
    title = sub.name[:1].upper() + sub.name[1:]
    out: Object = {}
    for suffix, path in (("", at), ("WithPath", at + "/{path}")):
        if suffix and sub.name != "proxy":
            continue
        rows: Object = {"parameters": [_PATH_NAME, *own]}
        for method in _CONNECT[sub.name]:
            verb = method.capitalize()
            rows[method] = {
                "tags": ["core_v1"],
                "operationId": f"connect{_group_words(resource)}{verb}{scope}{resource.kind}{title}{suffix}",
                "responses": {"200": {"description": "OK", "content": {"*/*": {"schema": {"type": "string"}}}}},
                "x-kubernetes-action": "connect",
                "x-kubernetes-group-version-kind": {"group": "", "version": resource.version, "kind": sub.kind},
            }
        out[path] = rows
    return out
