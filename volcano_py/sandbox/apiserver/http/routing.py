"""Routing: from a path to a resource or a discovery document, and from a method to a verb.

Kubernetes: RequestInfoFactory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from volcano_py.sandbox.apiserver.apimachinery import errors
from volcano_py.sandbox.apiserver.apimachinery.errors import PageNotFound, no_such_path
from volcano_py.sandbox.apiserver.registry.request import flag
from volcano_py.sandbox.apiserver.registry.resources import Registry, Resource


@dataclass(slots=True)
class Target:
    """A resource, one of its objects, or a subresource of one."""

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    watch: bool = False  # with the deprecated /watch/ paths


@dataclass(slots=True)
class Route:
    """A path of discovery: level is core (/api), groups (/apis), group, or version."""

    level: str
    group: str = ""
    version: str = ""


def route(registry: Registry, path: str) -> Target | Route:
    """Raises PageNotFound for paths outside the API, StatusError 404 inside it."""
    parts = path.split("/")[1:]
    if parts and parts[-1] == "" and len(parts) > 1:
        parts.pop()
    head = parts[0]
    if path == "/":
        raise PageNotFound
    if head == "api":
        if len(parts) == 1:
            return Route("core")
        group, version, rest = "", parts[1], parts[2:]
    elif head == "apis":
        if len(parts) == 1:
            return Route("groups")
        group = parts[1]
        if group not in registry.groups or not group:
            raise PageNotFound
        if len(parts) == 2:
            return Route("group", group)
        version, rest = parts[2], parts[3:]
    else:
        raise PageNotFound
    resources = registry.groups.get(group, {}).get(version)
    custom = is_custom(registry, group)
    if resources is None:
        raise PageNotFound if custom else no_such_path()
    if not rest:
        return Route("version", group, version)
    if "" in rest:
        raise PageNotFound if custom else no_such_path()
    watch = rest[0] == "watch" and len(rest) > 1
    if watch:
        rest = rest[1:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) >= 3:
        whole = resources.get("namespaces")
        if not (whole is not None and len(rest) == 3 and rest[2] in whole.subresources):
            namespace = unquote(rest[1])
            rest = rest[2:]
    resource = resources.get(rest[0])
    if resource is None:
        raise PageNotFound if custom else no_such_path()
    name = unquote(rest[1]) if len(rest) > 1 else ""
    subresource = "/".join(rest[2:])
    misplaced = bool(namespace) != resource.namespaced and (bool(namespace) or bool(name))
    if misplaced or len(rest) > 3:
        raise PageNotFound if custom else no_such_path()
    return Target(resource, namespace, name, subresource, watch)


def unserved(method: str, path: str) -> tuple[str, str, str, str, str, str, str] | None:
    """Verb, group, version, plural, subresource, namespace and name of an API path that is not served.

    None for a path without a resource. Kubernetes: RequestInfoFactory, which reads only the path.
    """
    parts = [unquote(part) for part in path.split("/")[1:] if part]
    head, group = parts[:1], ""
    if head == ["apis"] and len(parts) > 1:
        group = parts.pop(1)
    if head not in (["api"], ["apis"]) or len(parts) < 3:
        return None
    version, rest = parts[1], parts[2:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource = (*rest[:3], "", "")[:3]
    verb = _VERBS.get(method, method.lower())
    if not name:
        verb = {"get": "list", "delete": "deletecollection"}.get(verb, verb)
    return verb, group, version, plural, subresource, namespace, name


def is_custom(registry: Registry, group: str) -> bool:
    """Whether a group is that of CRDs."""
    for resources in registry.groups.get(group, {}).values():
        for resource in resources.values():
            return resource.custom is not None
    return False


_VERBS = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


def verb_of(method: str, target: Target, query: Any) -> str:
    """The verb of a method on a path; 404 and 405 as in kube-apiserver."""
    resource = target.resource
    verb = _VERBS.get(method, "")
    if target.subresource:
        sub = resource.subresources.get(target.subresource)
        if sub is None:
            if resource.custom is not None:
                raise errors.not_found(resource.group, resource.plural, target.name)
            raise no_such_path()
        if verb not in sub.verbs:
            if resource.custom is not None:
                raise errors.method_not_supported(resource.group, resource.plural, verb)
            raise errors.method_not_allowed()
        return verb
    if target.watch:
        return "watch"
    if resource.custom is not None:
        return _custom_verb(method, verb, target, query)
    if not target.name:
        if verb == "get":
            if "list" not in resource.verbs:
                raise errors.method_not_allowed()
            return "watch" if flag(query, "watch") else "list"
        if verb == "delete":
            verb = "deletecollection"
        if resource.namespaced and not target.namespace:
            raise errors.method_not_allowed()
        if verb not in ("create", "deletecollection") or verb not in resource.verbs:
            raise errors.method_not_allowed()
        return verb
    if verb == "create" or verb not in resource.verbs:
        raise errors.method_not_allowed()
    return verb


def _custom_verb(method: str, verb: str, target: Target, query: Any) -> str:
    resource = target.resource
    if not verb:
        raise errors.method_not_supported(resource.group, resource.plural, "")
    if not target.name:
        if verb == "get":
            return "watch" if flag(query, "watch") else "list"
        if verb == "delete":
            return "deletecollection"
        if verb in ("update", "patch"):
            raise errors.bad_request("name must be provided")
        if resource.namespaced and not target.namespace:
            raise PageNotFound
    return verb
