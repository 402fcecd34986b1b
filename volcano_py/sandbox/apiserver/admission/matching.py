"""Which requests webhooks and policies match, and the data that they receive. Kubernetes: the rules, namespace, object
and matchConditions matchers of k8s.io/apiserver/pkg/admission."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from volcano_py.sandbox.apiserver.apimachinery import selectors
from volcano_py.sandbox.apiserver.apimachinery.selectors import Match
from volcano_py.sandbox.apiserver.cel import expressions
from volcano_py.sandbox.apiserver.endpoints.reviews import user_info
from volcano_py.sandbox.apiserver.registry.api import Api, Attributes
from volcano_py.sandbox.apiserver.registry.resources import Resource

Object = dict[str, Any]

GROUP = "admissionregistration.k8s.io"
# configuration of admission itself is exempt
EXEMPT = frozenset(
    f"{plural}.{GROUP}"
    for plural in (
        "mutatingwebhookconfigurations",
        "validatingwebhookconfigurations",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
    )
)


@dataclass(slots=True)
class Scope:
    """The requests that concern a webhook or policy; `rules` None means all."""

    rules: list[Object] | None
    excluded: list[Object]
    equivalent: bool
    namespaces: Match | None
    objects: Match | None


def scope_of(row: Object, rules: list[Object] | None) -> Scope:
    """The scope of a webhook, matchConstraints or matchResources."""
    return Scope(
        rules,
        row.get("excludeResourceRules") or [],
        row.get("matchPolicy", "Equivalent") == "Equivalent",
        selectors.from_label_selector(row.get("namespaceSelector")),
        selectors.from_label_selector(row.get("objectSelector")),
    )


def seen_as(api: Api, scope: Scope, attributes: Attributes) -> Resource | None:
    """The version of the resource in which the scope covers a request; None if it does not."""
    if not _selected(api, scope, attributes):
        return None
    resource = attributes.request.resource
    others = [other for other in api.registry if other.collection is resource.collection]
    views = [resource, *others] if scope.equivalent else [resource]
    for view in views:
        if any(rule_matches(rule, view, attributes) for rule in scope.excluded):
            return None
    if scope.rules is None:
        return resource
    for view in views:
        if any(rule_matches(rule, view, attributes) for rule in scope.rules):
            return view
    return None


def _selected(api: Api, scope: Scope, attributes: Attributes) -> bool:
    resource = attributes.request.resource
    if scope.namespaces is not None:
        labels: dict[str, str] | None = None
        if resource.namespaced:
            name = attributes.request.namespace
            entry = api.store.collections["namespaces"].get("", name)
            labels = entry.labels if entry is not None else {}
        elif resource.qualified == "namespaces":
            labels = ((attributes.obj or attributes.old or {}).get("metadata") or {}).get("labels") or {}
        if labels is not None and not scope.namespaces(labels):
            return False
    if scope.objects is None:
        return True
    shown = [obj for obj in (attributes.obj, attributes.old) if obj is not None]
    return any(scope.objects((obj.get("metadata") or {}).get("labels") or {}) for obj in shown)


def expression_data(attributes: Attributes) -> Object:
    """The variables of every admission expression."""
    return {
        "object": attributes.obj,
        "oldObject": attributes.old,
        "request": review_request(attributes, attributes.request.resource, ""),
    }


def conditions_hold(conditions: list[Object], data: Object) -> tuple[bool, str]:
    """Whether all match conditions hold, and the error of one that has no value (then nothing matches)."""
    fault = ""
    for condition in conditions:
        text = condition.get("expression", "")
        try:
            if expressions.evaluate_with(text, data) is not True:
                return False, ""
        except ValueError as error:
            fault = fault or f"expression '{text}' resulted in error: {error}"
    return not fault, fault


def rule_matches(rule: Object, view: Resource, attributes: Attributes) -> bool:
    """Whether one rule of a webhook covers a request in a version of its resource."""

    def has(values: list[str] | None, wanted: str) -> bool:
        return bool(values) and ("*" in values or wanted in values)  # type: ignore[operator]

    if not has(rule.get("operations"), attributes.operation):
        return False
    if not has(rule.get("apiGroups"), view.group) or not has(rule.get("apiVersions"), view.version):
        return False
    scope = rule.get("scope", "*")
    if scope != "*" and (scope == "Namespaced") != view.namespaced:
        return False
    sub = attributes.request.subresource
    for spelled in rule.get("resources") or ():
        name, slash, wanted = spelled.partition("/")
        if name not in ("*", view.plural):
            continue
        if (slash and wanted in ("*", sub)) if sub or slash else True:
            return True
    return False


_OPTIONS = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}


def review_request(attributes: Attributes, view: Resource, uid: str) -> Object:
    """The request part of an AdmissionReview, without the objects."""
    request = attributes.request
    own = request.resource
    shown = attributes.obj or attributes.old or {}
    kind = _kind(shown, own)
    view_kind = kind if view is own or kind["kind"] != own.kind else _kind({}, view)
    out: Object = {
        "uid": uid,
        "kind": view_kind,
        "resource": {"group": view.group, "version": view.version, "resource": view.plural},
        "requestKind": kind,
        "requestResource": {"group": own.group, "version": own.version, "resource": own.plural},
    }
    if request.subresource:
        out["subResource"] = out["requestSubResource"] = request.subresource
    name = request.name or (shown.get("metadata") or {}).get("name", "")
    if name and request.verb != "deletecollection":
        out["name"] = name
    namespace = request.namespace if own.namespaced else name if own.qualified == "namespaces" else ""
    if namespace:
        out["namespace"] = namespace
    out["operation"] = attributes.operation
    out["userInfo"] = user_info(request.user)
    out["object"] = out["oldObject"] = None
    out["dryRun"] = request.dry_run
    out["options"] = _options(attributes)
    return out


def _kind(obj: Object, resource: Resource) -> Object:
    version = str(obj.get("apiVersion") or resource.api_version)
    group, _, short = version.rpartition("/")
    return {"group": group, "version": short, "kind": obj.get("kind") or resource.kind}


def _options(attributes: Attributes) -> Object:
    request = attributes.request
    out: Object = {"kind": _OPTIONS.get(attributes.operation, "CreateOptions"), "apiVersion": "meta.k8s.io/v1"}
    if attributes.operation == "DELETE":
        out.update(request.options)
    else:
        query = request.query
        if query.get("dryRun"):
            out["dryRun"] = [query["dryRun"]]
        if query.get("fieldManager"):
            out["fieldManager"] = query["fieldManager"]
        if query.get("fieldValidation"):
            out["fieldValidation"] = query["fieldValidation"]
    return out
