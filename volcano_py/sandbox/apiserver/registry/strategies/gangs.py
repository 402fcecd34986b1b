"""Workloads and PodGroups of scheduling.k8s.io/v1alpha2: fields with feature gates, priority, validation.

Kubernetes: pkg/registry/scheduling and pkg/apis/scheduling.
"""

from __future__ import annotations

from typing import Any

from volcano_py.sandbox.apiserver.apimachinery import features, metadata
from volcano_py.sandbox.apiserver.apimachinery.errors import (
    Cause,
    duplicate,
    invalid_value,
    required,
    too_many,
    unsupported,
)
from volcano_py.sandbox.apiserver.registry.api import Api
from volcano_py.sandbox.apiserver.registry.request import Request
from volcano_py.sandbox.apiserver.registry.strategies.priority import resolved
from volcano_py.sandbox.apiserver.registry.strategy import Strategy

Object = dict[str, Any]

_GATED = {
    features.TOPOLOGY: ("schedulingConstraints",),
    features.PREEMPTION: ("disruptionMode", "priorityClassName", "priority"),
    features.CLAIMS: ("resourceClaims",),
}
"""Fields of a PodGroup and of a template that are dropped while their gate is disabled."""
_MOST_TEMPLATES = 8
_MOST_CLAIMS = 4
_IMMUTABLE = (
    "podGroupTemplateRef",
    "schedulingPolicy",
    "schedulingConstraints",
    "resourceClaims",
    "disruptionMode",
    "priorityClassName",
    "priority",
)


# --- admission -------------------------------------------------------------------------------------------------------


def _drop_gated(api: Api, spec: Object) -> None:
    for gate, fields in _GATED.items():
        if gate not in api.features:
            for field in fields:
                spec.pop(field, None)


def _admit_group(api: Api, group: Object, request: Request) -> None:
    spec = group["spec"]
    _drop_gated(api, spec)
    if features.PREEMPTION not in api.features:
        return
    spec.setdefault("disruptionMode", "Pod")
    found = resolved(api, ("scheduling.k8s.io", "podgroups"), group, spec)
    spec["priority"] = found.value
    if found.name:
        spec["priorityClassName"] = found.name


def _admit_workload(api: Api, workload: Object, request: Request) -> None:
    for template in workload["spec"].get("podGroupTemplates") or []:
        _drop_gated(api, template)


# --- PodGroups -------------------------------------------------------------------------------------------------------


def _group(group: Object, request: Request) -> list[Cause]:
    spec = group["spec"]
    out = _template_causes(spec, "spec")
    if (reference := spec.get("podGroupTemplateRef")) is not None:
        workload, path = reference.get("workload"), "spec.podGroupTemplateRef.workload"
        if workload is None:
            out.append(required(path))
        else:
            out += named(workload, "workloadName", path, metadata.subdomain_errors)
            out += named(workload, "podGroupTemplateName", path, metadata.label_errors)
    return out


def _group_update(new: Object, old: Object, request: Request) -> list[Cause]:
    out = _group(new, request)
    for field in _IMMUTABLE:
        if new["spec"].get(field) != old["spec"].get(field):
            out.append(invalid_value(f"spec.{field}", new["spec"].get(field), "field is immutable"))
    return out


def _template_causes(spec: Object, path: str) -> list[Cause]:
    """The errors in the fields that a PodGroup and a template have in common."""
    out: list[Cause] = []
    policy, at = spec.get("schedulingPolicy") or {}, f"{path}.schedulingPolicy"
    chosen = [name for name in ("basic", "gang") if policy.get(name) is not None]
    if len(chosen) != 1:
        text = "must specify one of: `basic`, `gang`" if not chosen else "must specify exactly one of: `basic`, `gang`"
        out.append(invalid_value(at, "" if not chosen else ", ".join(chosen), text))
    elif chosen == ["gang"] and policy["gang"].get("minCount", 0) < 1:
        count = policy["gang"].get("minCount", 0)
        out.append(invalid_value(f"{at}.gang.minCount", count, "must be greater than or equal to 1"))
    out += topology_causes(spec, path)
    mode = spec.get("disruptionMode")
    if mode not in (None, "Pod", "PodGroup"):
        out.append(unsupported(f"{path}.disruptionMode", mode, ["Pod", "PodGroup"]))
    name = spec.get("priorityClassName")
    if name:
        faults = metadata.subdomain_errors(name)
        out += [invalid_value(f"{path}.priorityClassName", name, fault) for fault in faults]
    return out + claim_causes(spec.get("resourceClaims") or [], f"{path}.resourceClaims")


def topology_causes(spec: Object, path: str) -> list[Cause]:
    """The errors in `schedulingConstraints`."""
    out: list[Cause] = []
    topology = (spec.get("schedulingConstraints") or {}).get("topology") or []
    at = f"{path}.schedulingConstraints.topology"
    if len(topology) > 1:
        out.append(too_many(at, len(topology), 1))
    for index, constraint in enumerate(topology):
        key = constraint.get("key", "")
        faults = metadata.qualified_errors(key) if key else []
        out += [required(f"{at}[{index}].key")] if not key else []
        out += [invalid_value(f"{at}[{index}].key", key, fault) for fault in faults]
    return out


def claim_causes(claims: list[Object], path: str) -> list[Cause]:
    out = [too_many(path, len(claims), _MOST_CLAIMS)] if len(claims) > _MOST_CLAIMS else []
    known: set[str] = set()
    for index, claim in enumerate(claims):
        at = f"{path}[{index}]"
        out += named(claim, "name", at, metadata.label_errors)
        if claim.get("name") in known:
            out.append(duplicate(f"{at}.name", claim["name"]))
        known.add(claim.get("name", ""))
        sources = [name for name in ("resourceClaimName", "resourceClaimTemplateName") if claim.get(name) is not None]
        if len(sources) != 1:
            text = "must specify exactly one of: `resourceClaimName`, `resourceClaimTemplateName`"
            out.append(invalid_value(at, ", ".join(sources), text))
    return out


def named(of: Object, field: str, path: str, errors: Any) -> list[Cause]:
    name = of.get(field, "")
    if not name:
        return [required(f"{path}.{field}")]
    return [invalid_value(f"{path}.{field}", name, fault) for fault in errors(name)]


# --- Workloads -------------------------------------------------------------------------------------------------------


def _workload(workload: Object, request: Request) -> list[Cause]:
    spec = workload["spec"]
    out: list[Cause] = []
    if (controller := spec.get("controllerRef")) is not None:
        for field in ("kind", "name"):
            out += named(controller, field, "spec.controllerRef", metadata.path_segment_errors)
    templates, path = spec.get("podGroupTemplates") or [], "spec.podGroupTemplates"
    if not templates:
        out.append(required(path, "must have at least one item"))
    if len(templates) > _MOST_TEMPLATES:
        out.append(too_many(path, len(templates), _MOST_TEMPLATES))
    known: set[str] = set()
    for index, template in enumerate(templates):
        at = f"{path}[{index}]"
        out += named(template, "name", at, metadata.label_errors)
        if template.get("name") in known:
            out.append(duplicate(f"{at}.name", template["name"]))
        known.add(template.get("name", ""))
        out += _template_causes(template, at)
    return out


def _workload_update(new: Object, old: Object, request: Request) -> list[Cause]:
    out = _workload(new, request)
    for field in ("controllerRef", "podGroupTemplates"):
        if new["spec"].get(field) != old["spec"].get(field):
            out.append(invalid_value(f"spec.{field}", new["spec"].get(field), "field is immutable"))
    return out


STRATEGIES = {
    "podgroups.scheduling.k8s.io": Strategy(
        admit_create=_admit_group,
        validate_create=_group,
        validate_update=_group_update,
        has_status=True,
        has_generation=True,
        reset_fields=("status",),
    ),
    "workloads.scheduling.k8s.io": Strategy(
        admit_create=_admit_workload,
        validate_create=_workload,
        validate_update=_workload_update,
        has_generation=True,
    ),
}
