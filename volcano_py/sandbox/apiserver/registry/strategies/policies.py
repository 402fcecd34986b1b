"""Admission policies and their bindings: defaults and validation. Kubernetes: pkg/apis/admissionregistration."""

from __future__ import annotations

from typing import Any

from volcano_py.sandbox.apiserver.apimachinery.errors import Cause, duplicate, invalid_value, required, unsupported
from volcano_py.sandbox.apiserver.cel import expressions, objects
from volcano_py.sandbox.apiserver.registry.request import Request
from volcano_py.sandbox.apiserver.registry.strategies.admission import GROUP, conditions_causes, rule_causes
from volcano_py.sandbox.apiserver.registry.strategies.workloads import selector_causes
from volcano_py.sandbox.apiserver.registry.strategy import Strategy

Object = dict[str, Any]

_ACTIONS = ["Audit", "Deny", "Warn"]
_REASONS = ["Forbidden", "Invalid", "RequestEntityTooLarge", "Unauthorized"]


def _default_match(match: Object | None) -> None:
    if match is None:
        return
    match.setdefault("namespaceSelector", {})
    match.setdefault("objectSelector", {})
    match.setdefault("matchPolicy", "Equivalent")
    for key in ("resourceRules", "excludeResourceRules"):
        for rule in match.get(key) or ():
            rule.setdefault("scope", "*")


def _default_policy(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("failurePolicy", "Fail")
    _default_match(spec.get("matchConstraints"))


def _default_binding(obj: Object) -> None:
    _default_match(obj.setdefault("spec", {}).get("matchResources"))


def _first_generation(obj: Object, request: Request) -> None:
    obj["metadata"]["generation"] = 1


def _policy(obj: Object, out: list[Cause]) -> Object:
    spec: Object = obj.get("spec") or {}
    if spec.get("failurePolicy") not in ("Fail", "Ignore"):
        out.append(unsupported("spec.failurePolicy", spec.get("failurePolicy"), ["Fail", "Ignore"]))
    constraints = spec.get("matchConstraints")
    if constraints is None:
        out.append(required("spec.matchConstraints"))
    else:
        if not constraints.get("resourceRules"):
            out.append(required("spec.matchConstraints.resourceRules"))
        _match(constraints, "spec.matchConstraints", out)
    conditions_causes(spec.get("matchConditions") or [], "spec.matchConditions", out)
    names: set[str] = set()
    for index, row in enumerate(spec.get("variables") or []):
        at = f"spec.variables[{index}]"
        name = row.get("name", "")
        if not name:
            out.append(required(f"{at}.name", "name is required"))
        elif not name.isidentifier():
            out.append(invalid_value(f"{at}.name", name, "name is not a valid CEL identifier"))
        elif name in names:
            out.append(duplicate(f"{at}.name", name))
        names.add(name)
        _expression(row.get("expression", ""), f"{at}.expression", out)
    return spec


def _match(match: Object, at: str, out: list[Cause]) -> None:
    for key in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(match.get(key) or []):
            rule_causes(rule, f"{at}.{key}[{index}]", out)
    for key in ("namespaceSelector", "objectSelector"):
        out.extend(selector_causes(match.get(key), f"{at}.{key}"))
    if match.get("matchPolicy") not in ("Exact", "Equivalent"):
        out.append(unsupported(f"{at}.matchPolicy", match.get("matchPolicy"), ["Equivalent", "Exact"]))


def _expression(text: str, at: str, out: list[Cause]) -> None:
    if not text.strip():
        out.append(required(at, "expression is not specified"))
        return
    fault = expressions.fault(text)
    if fault:
        out.append(invalid_value(at, text, fault))


def _validating(obj: Object, request: Request) -> list[Cause]:
    out: list[Cause] = []
    spec = _policy(obj, out)
    rows = spec.get("validations") or []
    if not rows and not spec.get("auditAnnotations"):
        text = "validations or auditAnnotations must contain at least one item"
        out.append(required("spec.validations", text))
    for index, row in enumerate(rows):
        at = f"spec.validations[{index}]"
        _expression(row.get("expression", ""), f"{at}.expression", out)
        if row.get("messageExpression") is not None:
            _expression(row["messageExpression"], f"{at}.messageExpression", out)
        if row.get("reason") not in (None, *_REASONS):
            out.append(unsupported(f"{at}.reason", row["reason"], _REASONS))
    return out


def _mutating(obj: Object, request: Request) -> list[Cause]:
    out: list[Cause] = []
    spec = _policy(obj, out)
    rows = spec.get("mutations") or []
    if not rows:
        out.append(required("spec.mutations", "mutations must contain at least one item"))
    for index, row in enumerate(rows):
        at = f"spec.mutations[{index}]"
        kind = row.get("patchType")
        if kind not in ("ApplyConfiguration", "JSONPatch"):
            out.append(unsupported(f"{at}.patchType", kind, ["ApplyConfiguration", "JSONPatch"]))
            continue
        key = "jsonPatch" if kind == "JSONPatch" else "applyConfiguration"
        if row.get(key) is None:
            out.append(required(f"{at}.{key}", f"must be specified when patchType is {kind}"))
        else:
            _expression(objects.plain(row[key].get("expression", "")), f"{at}.{key}.expression", out)
    return out


def _binding(obj: Object, request: Request) -> list[Cause]:
    out: list[Cause] = []
    spec = obj.get("spec") or {}
    if not spec.get("policyName"):
        out.append(required("spec.policyName"))
    if spec.get("matchResources") is not None:
        _match(spec["matchResources"], "spec.matchResources", out)
    reference = spec.get("paramRef")
    if reference is not None:
        if bool(reference.get("name")) == (reference.get("selector") is not None):
            out.append(required("spec.paramRef.name", "one of name or selector must be specified"))
        if reference.get("parameterNotFoundAction") not in ("Allow", "Deny"):
            value = reference.get("parameterNotFoundAction")
            out.append(unsupported("spec.paramRef.parameterNotFoundAction", value, ["Allow", "Deny"]))
    return out


def _validating_binding(obj: Object, request: Request) -> list[Cause]:
    out = _binding(obj, request)
    actions = (obj.get("spec") or {}).get("validationActions") or []
    at = "spec.validationActions"
    if not actions:
        out.append(required(at, "at least one validation action is required"))
    for index, action in enumerate(actions):
        if action not in _ACTIONS:
            out.append(unsupported(f"{at}[{index}]", action, _ACTIONS))
        elif action in actions[:index]:
            out.append(duplicate(f"{at}[{index}]", action))
    if "Deny" in actions and "Warn" in actions:
        text = (
            "must not contain both Deny and Warn (repeating the same validation failure information in the API "
            "response and headers serves no purpose)"
        )
        out.append(invalid_value(at, actions, text))
    return out


def _strategy(default: Any, validate: Any, status: bool = False) -> Strategy:
    return Strategy(
        default=default,
        prepare_create=_first_generation,
        validate_create=validate,
        validate_update=lambda new, old, request: validate(new, request),
        has_generation=True,
        has_status=status,
        reset_fields=("status",) if status else (),
    )


STRATEGIES = {
    f"validatingadmissionpolicies.{GROUP}": _strategy(_default_policy, _validating, status=True),
    f"validatingadmissionpolicybindings.{GROUP}": _strategy(_default_binding, _validating_binding),
    f"mutatingadmissionpolicies.{GROUP}": _strategy(_default_policy, _mutating),
    f"mutatingadmissionpolicybindings.{GROUP}": _strategy(_default_binding, _binding),
}
