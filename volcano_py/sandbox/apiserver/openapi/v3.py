"""OpenAPI v3: the index, and one document per group version, generated from the type tables on the first request.

kubectl requires it for explain and for client-side validation: kinds with their properties, and a `fieldValidation`
parameter of every write operation (without it kubectl reads v2).
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from typing import Any

import orjson
from aiohttp import web

from volcano_py.sandbox.apiserver.apimachinery.errors import PageNotFound
from volcano_py.sandbox.apiserver.apimachinery.features import is_at_least
from volcano_py.sandbox.apiserver.openapi import paths as path_items
from volcano_py.sandbox.apiserver.openapi import v2, v2_protobuf
from volcano_py.sandbox.apiserver.registry.resources import Registry, Resource
from volcano_py.sandbox.apiserver.schema.types import (
    SPECIAL_DEFINITIONS,
    Field,
    Type,
    builtin,
    definition_name,
    definitions,
    marks,
)
from volcano_py.sandbox.apiserver.serializer.protobuf import go_name

Object = dict[str, Any]
VERSION = {"title": "Kubernetes", "version": "1.36"}
V2_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
V2_ACCEPTED = (V2_PROTOBUF, "application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
"""Go clients accept the second, which is not a valid media type: they could not parse it in a response."""
_EXTRA = (
    ".well-known/openid-configuration",
    "openid/v1/jwks",
    "version",
)
_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_LATER = {"1.37": ("batch.v1.JobSpec.scheduling",)}
"""By version of Kubernetes: fields of known structs that the definitions, of 1.36, lack."""


class OpenAPI:
    """The documents, kept until a definition changes."""

    def __init__(self, registry: Registry, kubernetes: str) -> None:
        self.registry = registry
        self._later = {name for version, names in _LATER.items() if is_at_least(kubernetes, version) for name in names}
        self.documents: dict[str, bytes] = {}
        self.generation = 0
        registry.changed.append(self.forget)

    def forget(self) -> None:
        self.documents.clear()
        self.generation += 1

    def index(self) -> Object:
        """The index of documents; the hash in a URL changes with the content."""
        paths = ["api", "api/v1", "apis", *_EXTRA]
        for group, versions in self.registry.groups.items():
            if not group:
                continue
            custom = any(r.custom is not None for rows in versions.values() for r in rows.values())
            if not custom:
                paths.append(f"apis/{group}")
            paths.extend(f"apis/{group}/{version}" for version in versions)
        out = {}
        for path in sorted(paths):
            token = hashlib.sha256(f"{path}:{self.generation}".encode()).hexdigest().upper()
            out[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={token}"}
        return {"paths": out}

    def document(self, path: str) -> bytes:
        """One document as JSON; PageNotFound if it does not exist."""
        found = self.documents.get(path)
        if found is None:
            found = self.documents[path] = orjson.dumps(self._make(path))
        return found

    def second(self, media_type: str) -> bytes:
        """The document of OpenAPI v2, in JSON or protobuf."""
        found = self.documents.get(media_type)
        if found is None:
            made = v2.document(orjson.loads(self.document(path)) for path in self.index()["paths"])
            found = v2_protobuf.encode(made) if media_type == V2_PROTOBUF else orjson.dumps(made)
            self.documents[media_type] = found
        return found

    def _make(self, path: str) -> Object:
        parts = path.split("/")
        if path == "api/v1":
            group, version = "", "v1"
        elif parts[0] == "apis" and len(parts) == 3:
            group, version = parts[1], parts[2]
        elif f"/openapi/v3/{path}?" in str(self.index()["paths"].get(path, {})):
            return {"openapi": "3.0.0", "info": VERSION, "paths": {}, "components": {"schemas": {}}}
        else:
            raise PageNotFound
        resources = self.registry.groups.get(group, {}).get(version)
        if resources is None:
            raise PageNotFound
        custom = any(resource.custom is not None for resource in resources.values())
        schemas = _Schemas(self._later)
        paths: Object = {}
        for resource in resources.values():
            if resource.custom is not None:
                _custom_schemas(resource, schemas)
            else:
                _builtin_schemas(resource, schemas)
            paths.update(path_items.operations(resource, schema_name(resource)))
        for name in ("DeleteOptions", "Status", "ListMeta", "ObjectMeta", "Patch"):
            if name == "Patch":
                text = "Patch is provided to give a concrete name and type to the Kubernetes PATCH request body."
                schemas.setdefault(_META + name, {"description": text, "type": "object"})
            else:
                _add_type(builtin(f"meta.v1.{name}") if name != "ListMeta" else None, schemas, _META + name)
        info = {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"} if custom else VERSION
        components: Object = {"schemas": dict(sorted(schemas.items()))}
        if not custom:
            components["securitySchemes"] = {
                "BearerToken": {
                    "type": "apiKey",
                    "description": "Bearer Token authentication",
                    "name": "authorization",
                    "in": "header",
                }
            }
        return {
            "openapi": "3.0.0",
            "info": info,
            "paths": dict(sorted(paths.items())),
            "components": components,
        }


def schema_name(resource: Resource) -> str:
    """The name of a kind's schema: a Go name for built-in kinds, with the reversed group for custom ones."""
    if resource.custom is not None:
        reversed_group = ".".join(reversed(resource.group.split(".")))
        return f"{reversed_group}.{resource.version}.{resource.kind}"
    return definition_name(resource.type.go_name)


def _gvk(group: str, version: str, kind: str) -> list[Object]:
    return [{"group": group, "kind": kind, "version": version}]


def _list_schema(resource: Resource, name: str) -> Object:
    ref = f"#/components/schemas/{name}"
    items: Object = {"$ref": ref} if resource.custom is not None else {"allOf": [{"$ref": ref}], "default": {}}
    meta: Object = {"allOf": [{"$ref": f"#/components/schemas/{_META}ListMeta"}]}
    if resource.custom is None:
        meta["default"] = {}
    return {
        "description": f"{resource.list_kind} is a list of {resource.kind}",
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string", "description": _API_VERSION},
            "items": {"type": "array", "items": items, "description": f"List of {resource.plural}."},
            "kind": {"type": "string", "description": _KIND},
            "metadata": {**meta, "description": "Standard list metadata."},
        },
        "x-kubernetes-group-version-kind": _gvk(resource.group, resource.version, resource.list_kind),
    }


_API_VERSION = "APIVersion defines the versioned schema of this representation of an object."
_KIND = "Kind is a string value representing the REST resource this object represents."


class _Schemas(dict[str, Object]):
    """The schemas of a document by name. `later`: the fields of _LATER that the server has."""

    def __init__(self, later: Collection[str]) -> None:
        super().__init__()
        self.later = later


# --- built-in kinds --------------------------------------------------------------------------------------------------


def _builtin_schemas(resource: Resource, schemas: _Schemas) -> None:
    name = schema_name(resource)
    _add_type(resource.type, schemas, name)
    if name not in definitions():  # a kind of a later version than the definitions
        schemas[name]["x-kubernetes-group-version-kind"] = _gvk(resource.group, resource.version, resource.kind)
        texts = {"apiVersion": _API_VERSION, "kind": _KIND}
        schemas[name]["properties"] |= {key: {"type": "string", "description": text} for key, text in texts.items()}
    if "list" in resource.verbs:
        schemas[name + "List"] = _list_schema(resource, name)
    for sub in resource.subresources.values():
        if sub.group is not None and sub.version is not None:
            go = go_name(f"{sub.group}/{sub.version}", sub.kind)
            _add_type(builtin(go), schemas, definition_name(go))


def _add_type(type_: Type | None, schemas: _Schemas, name: str) -> None:
    if name in schemas:
        return
    given = definitions().get(name, {})
    out: Object = {}
    if given.get("description"):
        out["description"] = given["description"]
    out["type"] = "object"
    schemas[name] = out
    if required := given.get("required") or _required(type_):
        out["required"] = required
    described = given.get("properties", {})
    properties = _described(described) if type_ is None else _properties(type_, described, schemas)
    if properties:
        out["properties"] = dict(sorted(properties.items()))
    for key, value in given.items():
        if key.startswith("x-kubernetes-"):
            out[key] = value


def _required(type_: Type | None) -> list[str]:
    """The required fields of a type without a definition."""
    marked = marks().get(type_.go_name, {}) if type_ is not None else {}
    return sorted(key for key, mark in marked.items() if mark.get("required"))


def _described(described: Object) -> dict[str, Object]:
    """The properties of a definition without a type."""
    properties: dict[str, Object] = {}
    for key, value in described.items():
        kind = value.get("type")
        plain = kind[0] if isinstance(kind, list) else kind
        properties[key] = {"type": plain, "description": value.get("description", "")}
        if value.get("format"):
            properties[key]["format"] = value["format"]
    return properties


def _properties(type_: Type, described: Object, schemas: _Schemas) -> dict[str, Object]:
    properties: dict[str, Object] = {}
    marked = marks().get(type_.go_name, {})
    for key in ("apiVersion", "kind"):
        if key in described:
            properties[key] = {"type": "string", "description": described[key].get("description", "")}
    for key, field in type_.fields.items():
        if described and key not in described and f"{type_.go_name}.{key}" not in schemas.later:
            continue  # a field of a later version
        properties[key] = _property(field, described.get(key, {}), schemas)
        mark = marked.get(key)
        if mark is not None:
            _mark(properties[key], mark)
    return properties


def _mark(schema: Object, mark: Object) -> None:
    """Add the enumerated values of a field, and its default."""
    if "items" in mark:
        schema["items"] = {**schema["items"], "enum": mark["items"]}
    for key in ("enum", "default"):
        if key in mark:
            schema[key] = mark[key]


def _ref(name: str) -> Object:
    return {"allOf": [{"$ref": f"#/components/schemas/{name}"}]}


def _property(field: Field, given: Object, schemas: _Schemas) -> Object:
    out = _schema_of(field.type, given, schemas)
    if not field.pointer and not field.omit_empty and field.type.kind in ("string", "bool", "int32", "int64"):
        out.setdefault("default", {"string": "", "bool": False}.get(field.type.kind, 0))
    if not field.pointer and field.type.kind == "struct":
        out["default"] = {}
    if given.get("description"):
        out["description"] = given["description"]
    for key, value in given.items():
        if key.startswith("x-kubernetes-"):
            out[key] = value
    return out


def _item(type_: Type, given: Object, schemas: _Schemas) -> Object:
    out = _schema_of(type_, given, schemas)
    if type_.kind == "struct":
        out["default"] = {}
    elif type_.kind == "string":
        out["default"] = ""
    elif "allOf" in out:
        return {"$ref": out["allOf"][0]["$ref"]}
    return out


_PLAIN: dict[str, Object] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "double": {"type": "number", "format": "double"},
    "bytes": {"type": "string", "format": "byte"},
    "raw": {"type": "object"},
    "any": {},
}
_SPECIAL: dict[str, Object] = {
    "quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    "intstr": {"oneOf": [{"type": "string"}, {"type": "integer"}], "format": "int-or-string"},
    "time": {"type": "string", "format": "date-time"},
    "microtime": {"type": "string", "format": "date-time"},
    "duration": {"type": "string"},
}


def _schema_of(type_: Type, given: Object, schemas: _Schemas) -> Object:
    kind = type_.kind
    if kind == "struct":
        name = definition_name(type_.go_name)
        _add_type(type_, schemas, name)
        return _ref(name)
    if kind in _SPECIAL:
        name = SPECIAL_DEFINITIONS[kind]
        text = definitions().get(name, {}).get("description")
        schemas.setdefault(name, {**({"description": text} if text else {}), **_SPECIAL[kind]})
        return _ref(name)
    if kind == "list" and type_.elem is not None:
        return {"type": "array", "items": _item(type_.elem, given.get("items") or {}, schemas)}
    if kind == "map" and type_.elem is not None:
        inner = _item(type_.elem, given.get("additionalProperties") or {}, schemas)
        return {"type": "object", "additionalProperties": inner}
    return dict(_PLAIN[kind])


# --- custom kinds ----------------------------------------------------------------------------------------------------


def _custom_schemas(resource: Resource, schemas: dict[str, Object]) -> None:
    name = schema_name(resource)
    schema = resource.custom.openapi_schema()
    properties = {
        "apiVersion": {"type": "string", "description": _API_VERSION},
        "kind": {"type": "string", "description": _KIND},
        "metadata": {**_ref(_META + "ObjectMeta"), "description": "Standard object's metadata."},
    }
    for key, value in schema.get("properties", {}).items():
        if key not in properties:
            properties[key] = value
    out = {**schema, "type": "object", "properties": properties}
    out["x-kubernetes-group-version-kind"] = _gvk(resource.group, resource.version, resource.kind)
    schemas[name] = out
    schemas[
        name + "List"
        if resource.list_kind == resource.kind + "List"
        else name.rpartition(".")[0] + "." + resource.list_kind
    ] = _list_schema(resource, name)


# --- HTTP ------------------------------------------------------------------------------------------------------------


async def serve(server: Any, http: web.BaseRequest, path: str) -> web.StreamResponse:
    """/openapi/v2, /openapi/v3 and the paths below."""
    openapi: OpenAPI = server.api.extensions["openapi"]
    rest = path.removeprefix("/openapi/").strip("/")
    kind = "application/json"
    if rest == "v3":
        body, kind = orjson.dumps(openapi.index()), "text/plain; charset=utf-8"
    elif rest == "v2":
        accepted = http.headers.get("Accept", "").split(",", 1)[0].strip()
        kind = V2_PROTOBUF if accepted in V2_ACCEPTED else kind
        body = openapi.second(kind)
    else:
        body = openapi.document(rest.removeprefix("v3/"))
    etag = '"' + hashlib.sha256(body).hexdigest().upper() + '"'
    if http.headers.get("If-None-Match") == etag:
        return web.Response(status=304, headers={"Etag": etag})
    return web.Response(body=body, headers={"Content-Type": kind, "Etag": etag})
