"""Prevents privilege escalation: roles need `escalate`, bindings need `bind`, or the user must have the rules.

Kubernetes: pkg/registry/rbac (policybased storages, escalation_check, validation.Covers and CompactRules). The checks
run after mutating admission and before validation.
"""

from __future__ import annotations

import copy
from typing import Any

from volcano_py.sandbox.apiserver.apimachinery import errors
from volcano_py.sandbox.apiserver.auth.authorization import MASTERS, Access, allowed
from volcano_py.sandbox.apiserver.auth.rbac import GROUP, Rbac
from volcano_py.sandbox.apiserver.registry.api import Api
from volcano_py.sandbox.apiserver.registry.request import Request, User

Object = dict[str, Any]

_ALL: list[Object] = [
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
]
_UNCHECKED_METADATA = ("ownerReferences", "finalizers", "managedFields")
"""The fields that the garbage collector changes: such an update grants nothing."""


def check_role(api: Api, role: Object, old: Object | None, request: Request) -> None:
    """Raise 403 if a Role or ClusterRole grants more than its writer has, unless they have the verb `escalate`."""
    if MASTERS in request.user.groups or _grants_nothing(role, old):
        return
    plural = request.resource.plural
    access = Access(request.user, "escalate", GROUP, resource=plural, namespace=request.namespace, name=request.name)
    if allowed(api, access):
        return
    rbac: Rbac = api.extensions["rbac"]
    held = rbac.rules_for(request.user, request.namespace)
    name = role["metadata"].get("name", "")
    aggregates = any((one or {}).get("aggregationRule") for one in (role, old))
    if aggregates and _missing(_ALL, held):
        why = "must have cluster-admin privileges to use an aggregationRule"
        raise errors.forbidden(GROUP, plural, name, why)
    _require(role.get("rules") or [], held, request, name)


def check_binding(api: Api, binding: Object, old: Object | None, request: Request) -> None:
    """Raise 403 if a binding grants more than its writer has and may not `bind`; 404 if its role is missing, too."""
    if MASTERS in request.user.groups or _grants_nothing(binding, old):
        return
    reference = binding.get("roleRef") or {}
    plural = {"ClusterRole": "clusterroles", "Role": "roles"}.get(reference.get("kind", ""))
    if plural is None:
        return  # validation rejects it
    name = reference.get("name", "")
    group = reference.get("apiGroup", "")
    if allowed(api, Access(request.user, "bind", group, resource=plural, namespace=request.namespace, name=name)):
        return
    rbac: Rbac = api.extensions["rbac"]
    role = rbac.role(reference, request.namespace)
    if role is None:
        raise errors.not_found(GROUP, plural, name)
    held = rbac.rules_for(request.user, request.namespace)
    _require(role.load().get("rules") or [], held, request, binding["metadata"].get("name", ""))


def _grants_nothing(new: Object, old: Object | None) -> bool:
    """Whether an update changes only what the garbage collector changes."""
    if old is None:
        return False
    changed = copy.copy(new)
    meta = changed["metadata"] = dict(new["metadata"])
    for key in _UNCHECKED_METADATA:
        meta.pop(key, None)
        if key in old["metadata"]:
            meta[key] = old["metadata"][key]
    return changed == old


def _require(rules: list[Object], held: list[Object], request: Request, name: str) -> None:
    missing = _missing(rules, held)
    if not missing:
        return
    lines = "\n".join(sorted({_shown(rule) for rule in _compacted(missing)}))
    user: User = request.user
    who = f'user "{user.name}" (groups={_quoted(user.groups)})'
    why = f"{who} is attempting to grant RBAC permissions not currently held:\n{lines}"
    raise errors.forbidden(GROUP, request.resource.plural, name, why)


def _missing(rules: list[Object], held: list[Object]) -> list[Object]:
    """The parts of rules, one verb on one resource (and name) or path each, that no held rule covers."""
    parts = [part for rule in rules for part in _parts(rule)]
    return [part for part in parts if not any(_covers(rule, part) for rule in held)]


def _parts(rule: Object) -> list[Object]:
    verbs = rule.get("verbs") or ()
    out: list[Object] = []
    for group in rule.get("apiGroups") or ():
        for resource in rule.get("resources") or ():
            for verb in verbs:
                part: Object = {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
                names = rule.get("resourceNames")
                out += [part] if not names else [{**part, "resourceNames": [name]} for name in names]
    for path in rule.get("nonResourceURLs") or ():
        out += [{"nonResourceURLs": [path], "verbs": [verb]} for verb in verbs]
    return out


def _covers(held: Object, part: Object) -> bool:
    """Whether a rule covers a part."""
    if not _has(held.get("verbs"), part["verbs"][0]):
        return False
    if "nonResourceURLs" in part:
        path = part["nonResourceURLs"][0]
        patterns = held.get("nonResourceURLs") or ()
        return any(p == path or (p.endswith("*") and path.startswith(p.rstrip("*"))) for p in patterns)
    resource = part["resources"][0]
    resources = held.get("resources") or ()
    _, slash, subresource = resource.partition("/")
    if not (_has(resources, resource) or (slash and f"*/{subresource}" in resources)):
        return False
    names = held.get("resourceNames")
    named = not names or (bool(part.get("resourceNames")) and part["resourceNames"][0] in names)
    return named and _has(held.get("apiGroups"), part["apiGroups"][0])


def _has(values: Any, wanted: str) -> bool:
    return bool(values) and (wanted in values or "*" in values)


def _compacted(parts: list[Object]) -> list[Object]:
    """The parts of one resource merged into one rule with all their verbs."""
    out: list[Object] = []
    by_resource: dict[tuple[str, str], Object] = {}
    for part in parts:
        if "nonResourceURLs" in part or "resourceNames" in part:
            out.append(part)
            continue
        key = part["apiGroups"][0], part["resources"][0]
        if key in by_resource:
            by_resource[key]["verbs"] += part["verbs"]
        else:
            by_resource[key] = {**part, "verbs": list(part["verbs"])}
    return [*out, *by_resource.values()]


def _shown(rule: Object) -> str:
    titles = {
        "apiGroups": "APIGroups",
        "resources": "Resources",
        "nonResourceURLs": "NonResourceURLs",
        "resourceNames": "ResourceNames",
        "verbs": "Verbs",
    }
    return "{" + ", ".join(f"{title}:{_quoted(rule[key])}" for key, title in titles.items() if rule.get(key)) + "}"


def _quoted(values: Any) -> str:
    """A list of strings as Go prints it with %q."""
    return "[" + " ".join(f'"{value}"' for value in values) + "]"
