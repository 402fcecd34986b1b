"""Roles and bindings as objects; `auth.rbac` evaluates them. Kubernetes: pkg/registry/rbac."""

from __future__ import annotations

from typing import Any

from volcano_py.sandbox.apiserver.apimachinery import metadata
from volcano_py.sandbox.apiserver.apimachinery.errors import Cause, invalid_value, required, unsupported
from volcano_py.sandbox.apiserver.registry.request import Request
from volcano_py.sandbox.apiserver.registry.strategy import Strategy

Object = dict[str, Any]

GROUP = "rbac.authorization.k8s.io"


def _default_binding(obj: Object) -> None:
    role = obj.get("roleRef") or {}
    if role and not role.get("apiGroup"):
        role["apiGroup"] = GROUP
    for subject in obj.get("subjects") or ():
        if not subject.get("apiGroup") and subject.get("kind") in ("User", "Group"):
            subject["apiGroup"] = GROUP


def _rules(obj: Object, request: Request) -> list[Cause]:
    out: list[Cause] = []
    for index, rule in enumerate(obj.get("rules") or []):
        at = f"rules[{index}]"
        if not rule.get("verbs"):
            out.append(required(f"{at}.verbs", "verbs must contain at least one value"))
        if rule.get("nonResourceURLs"):
            if request.resource.namespaced:
                text = "namespaced rules cannot apply to non-resource URLs"
                out.append(invalid_value(f"{at}.nonResourceURLs", rule["nonResourceURLs"], text))
            continue
        if not rule.get("apiGroups"):
            out.append(required(f"{at}.apiGroups", "resource rules must supply at least one api group"))
        if not rule.get("resources"):
            out.append(required(f"{at}.resources", "resource rules must supply at least one resource"))
    return out


def _binding(obj: Object, request: Request) -> list[Cause]:
    role = obj.get("roleRef") or {}
    out: list[Cause] = []
    if role.get("apiGroup") != GROUP:
        out.append(unsupported("roleRef.apiGroup", role.get("apiGroup", ""), [GROUP]))
    kinds = ["Role", "ClusterRole"] if request.resource.namespaced else ["ClusterRole"]
    if role.get("kind") not in kinds:
        out.append(unsupported("roleRef.kind", role.get("kind", ""), sorted(kinds)))
    if not role.get("name"):
        out.append(required("roleRef.name"))
    for index, subject in enumerate(obj.get("subjects") or []):
        at = f"subjects[{index}]"
        if not subject.get("name"):
            out.append(required(f"{at}.name"))
        if subject.get("kind") == "ServiceAccount" and not subject.get("namespace"):
            out.append(required(f"{at}.namespace"))
        if subject.get("kind") not in ("ServiceAccount", "User", "Group"):
            choices = ["Group", "ServiceAccount", "User"]
            out.append(unsupported(f"{at}.kind", subject.get("kind", ""), choices))
    return out


def _binding_update(new: Object, old: Object, request: Request) -> list[Cause]:
    out = _binding(new, request)
    if new.get("roleRef") != old.get("roleRef"):
        out.append(invalid_value("roleRef", new.get("roleRef"), "cannot change roleRef"))
    return out


def _no_empty_rules(obj: Object, request: Request) -> None:
    if not obj.get("rules"):
        obj["rules"] = None  # an empty list is not stored


_ROLE = Strategy(
    prepare_create=_no_empty_rules,
    prepare_update=lambda new, old, request: _no_empty_rules(new, request),
    validate_create=_rules,
    validate_update=lambda new, old, request: _rules(new, request),
    name_errors=metadata.path_segment_errors,
    create_on_update=True,
)
_BINDING = Strategy(
    default=_default_binding,
    validate_create=_binding,
    validate_update=_binding_update,
    name_errors=metadata.path_segment_errors,
    create_on_update=True,
)

STRATEGIES = {
    f"roles.{GROUP}": _ROLE,
    f"clusterroles.{GROUP}": _ROLE,
    f"rolebindings.{GROUP}": _BINDING,
    f"clusterrolebindings.{GROUP}": _BINDING,
}
