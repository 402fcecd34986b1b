"""Workloads, PodGroups and CompositePodGroups of scheduling.k8s.io/v1beta1 and v1alpha3, as Kubernetes 1.37 has them:
fields with feature gates, defaults, priority, validation.

Kubernetes: pkg/registry/scheduling, pkg/apis/scheduling/validation, plugin/pkg/admission/scheduling.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
from volcano_py.sandbox.apiserver.registry.strategies.gangs import claim_causes, named, topology_causes
from volcano_py.sandbox.apiserver.registry.strategies.priority import resolved
from volcano_py.sandbox.apiserver.registry.strategy import Strategy

Object = dict[str, Any]

PROTECTION = "scheduling.k8s.io/podgroup-protection"
_GROUP = "scheduling.k8s.io"
_GATED = {
    features.TOPOLOGY: ("schedulingConstraints",),
    features.CLAIMS: ("resourceClaims",),
    features.COMPOSITE: ("parentCompositePodGroupName", "compositePodGroupTemplates"),
    features.POLICY: ("preemptionPolicy",),
}
"""Fields that are dropped while their gate is disabled, unless the old object has them."""
_MOST_TEMPLATES = 8
_MOST_PRIORITY = 1_000_000_000
_DEEPEST = 4
_OWN = ("disruptionMode", "priorityClassName", "priority", "preemptionPolicy", "schedulingConstraints")
"""Fields of groups and templates that never change."""
_OF_GROUP = (*_OWN, "parentCompositePodGroupName", "workloadRef", "resourceClaims")


# --- admission -------------------------------------------------------------------------------------------------------


def _drop_gated(api: Api, spec: Object, old: Object) -> None:
    for gate, fields in _GATED.items():
        if gate not in api.features:
            for field in fields:
                if field not in old:
                    spec.pop(field, None)


def _admit_group(plural: str) -> Callable[[Api, Object, Request], None]:
    def admit(api: Api, group: Object, request: Request) -> None:
        spec = group["spec"]
        _drop_gated(api, spec, {})
        spec.setdefault("disruptionMode", {"single": {}})
        found = resolved(api, (_GROUP, plural), group, spec)
        spec["priority"] = found.value
        if found.name:
            spec["priorityClassName"] = found.name
        if features.POLICY in api.features:
            spec.setdefault("preemptionPolicy", found.policy)
        if plural == "podgroups":
            finalizers = group["metadata"].setdefault("finalizers", [])
            if PROTECTION not in finalizers:
                finalizers.append(PROTECTION)

    return admit


def _admit_update(api: Api, new: Object, old: Object, request: Request) -> None:
    _drop_gated(api, new["spec"], old["spec"])


def _admit_workload(api: Api, workload: Object, request: Request) -> None:
    for spec, _, _ in _templates(workload["spec"], "spec", root=True):
        _drop_gated(api, spec, {})


# --- PodGroups and CompositePodGroups --------------------------------------------------------------------------------


def _group(group: Object, request: Request) -> list[Cause]:
    spec = group["spec"]
    return _template_causes(spec, "spec", composite=False) + _place_causes(spec, needs_workload=False)


def _composite(group: Object, request: Request) -> list[Cause]:
    spec = group["spec"]
    return _template_causes(spec, "spec", composite=True) + _place_causes(spec, needs_workload=True)


def _place_causes(spec: Object, *, needs_workload: bool) -> list[Cause]:
    """The errors in a group's parent and template."""
    out: list[Cause] = []
    parent, reference = spec.get("parentCompositePodGroupName"), spec.get("workloadRef")
    if parent is not None:
        faults = metadata.subdomain_errors(parent)
        out += [invalid_value("spec.parentCompositePodGroupName", parent, fault) for fault in faults]
    if reference is not None:
        out += named(reference, "workloadName", "spec.workloadRef", metadata.subdomain_errors)
        out += named(reference, "templateName", "spec.workloadRef", metadata.label_errors)
    elif needs_workload:
        out.append(required("spec.workloadRef"))
    elif parent is not None:
        out.append(required("spec.workloadRef", "must be set if parentCompositePodGroupName is set"))
    return out


def _group_update(new: Object, old: Object, request: Request) -> list[Cause]:
    return _group(new, request) + _changed(new["spec"], old["spec"], "spec", _OF_GROUP, counts=True)


def _composite_update(new: Object, old: Object, request: Request) -> list[Cause]:
    return _composite(new, request) + _changed(new["spec"], old["spec"], "spec", _OF_GROUP, counts=False)


def _changed(new: Object, old: Object, path: str, fields: tuple[str, ...], *, counts: bool) -> list[Cause]:
    """The immutable fields that differ. `counts`: the minimum of a gang may change, but not the kind of policy."""
    out = [
        invalid_value(f"{path}.{field}", new.get(field), "field is immutable")
        for field in fields
        if new.get(field) != old.get(field)
    ]
    policies = [spec.get("schedulingPolicy") or {} for spec in (new, old)]
    if policies[0] != policies[1] and not (counts and all(p.get("gang") for p in policies)):
        out.append(invalid_value(f"{path}.schedulingPolicy", policies[0], "field is immutable"))
    return out


def _status(new: Object, old: Object, request: Request) -> list[Cause]:
    path = "status.resourceClaimStatuses"
    rows = (new.get("status") or {}).get("resourceClaimStatuses") or []
    names = {claim.get("name") for claim in new["spec"].get("resourceClaims") or []}
    out = [too_many(path, len(rows), 4)] if len(rows) > 4 else []
    for index, row in enumerate(rows):
        if row.get("name") not in names:
            text = "must match the name of an entry in spec.resourceClaims"
            out.append(invalid_value(f"{path}[{index}].name", row.get("name", ""), text))
    return out


def _template_causes(spec: Object, path: str, *, composite: bool) -> list[Cause]:
    """The errors in the fields that a group and a template have in common."""
    count = "minGroupCount" if composite else "minCount"
    out = _union(spec.get("schedulingPolicy") or {}, f"{path}.schedulingPolicy", ("basic", "gang"))
    gang = (spec.get("schedulingPolicy") or {}).get("gang")
    if not out and gang is not None and gang.get(count, 0) < 1:
        text = "must be greater than or equal to 1"
        out.append(invalid_value(f"{path}.schedulingPolicy.gang.{count}", gang.get(count, 0), text))
    out += topology_causes(spec, path)
    mode = spec.get("disruptionMode")
    if mode is not None:
        out += _union(mode, f"{path}.disruptionMode", ("all", "single"))
    name = spec.get("priorityClassName")
    if name:
        faults = metadata.subdomain_errors(name)
        out += [invalid_value(f"{path}.priorityClassName", name, fault) for fault in faults]
    priority = spec.get("priority")
    if priority is not None and priority > _MOST_PRIORITY:
        out.append(invalid_value(f"{path}.priority", priority, f"must be less than or equal to {_MOST_PRIORITY}"))
    policy = spec.get("preemptionPolicy")
    if policy not in (None, "PreemptLowerPriority", "Never"):
        out.append(unsupported(f"{path}.preemptionPolicy", policy, ["Never", "PreemptLowerPriority"]))
    return out + claim_causes(spec.get("resourceClaims") or [], f"{path}.resourceClaims")


def _union(given: Object, path: str, members: tuple[str, ...]) -> list[Cause]:
    chosen = [name for name in members if given.get(name) is not None]
    if len(chosen) == 1:
        return []
    listed = ", ".join(f"`{name}`" for name in members)
    text = f"must specify one of: {listed}" if not chosen else f"must specify exactly one of: {listed}"
    return [invalid_value(path, ", ".join(chosen), text)]


# --- Workloads -------------------------------------------------------------------------------------------------------


def _templates(spec: Object, path: str, *, root: bool, depth: int = 1) -> Iterator[tuple[Object, str, int]]:
    """All templates of a Workload, with path and depth; with `root`, first the spec itself."""
    if root:
        yield spec, path, 0
    for field in ("podGroupTemplates", "compositePodGroupTemplates"):
        for index, template in enumerate(spec.get(field) or []):
            at = f"{path}.{field}[{index}]"
            yield template, at, depth
            yield from _templates(template, at, root=False, depth=depth + 1)


def _is_composite(path: str) -> bool:
    return path.rpartition(".")[2].startswith("compositePodGroupTemplates")


def _workload(workload: Object, request: Request) -> list[Cause]:
    spec = workload["spec"]
    out: list[Cause] = []
    if (controller := spec.get("controllerRef")) is not None:
        for field in ("kind", "name"):
            out += named(controller, field, "spec.controllerRef", metadata.path_segment_errors)
    chosen = [f for f in ("podGroupTemplates", "compositePodGroupTemplates") if spec.get(f)]
    if len(chosen) != 1:
        listed = "`compositePodGroupTemplates`, `podGroupTemplates`"
        which = "one of" if not chosen else "exactly one of"
        out.append(invalid_value("spec", ", ".join(chosen), f"must specify {which}: {listed}"))
    known: set[str] = set()
    ways: set[tuple[str, Any]] = set()
    for template, at, depth in _templates(spec, "spec", root=True):
        for field in ("podGroupTemplates", "compositePodGroupTemplates"):
            if len(template.get(field) or []) > _MOST_TEMPLATES:
                out.append(too_many(f"{at}.{field}", len(template[field]), _MOST_TEMPLATES))
        if not depth:
            continue
        if depth > _DEEPEST:
            out.append(invalid_value(at, depth, f"maximum template hierarchy depth is {_DEEPEST}"))
            break
        out += named(template, "name", at, metadata.label_errors)
        if template.get("name") in known:
            out.append(duplicate(f"{at}.name", template["name"]))
        known.add(template.get("name", ""))
        composite = _is_composite(at)
        if composite and not (template.get("podGroupTemplates") or template.get("compositePodGroupTemplates")):
            out.append(required(at, "must have at least one child template"))
        out += _template_causes(template, at, composite=composite)
        ways |= {(f, template[f]) for f in ("priority", "priorityClassName") if template.get(f) not in (None, "")}
    if len(ways) > 1:
        text = "all templates must have the same priority or priorityClassName"
        out.append(invalid_value("spec", ", ".join(sorted(str(value) for _, value in ways)), text))
    return out


def _workload_update(new: Object, old: Object, request: Request) -> list[Cause]:
    out = _workload(new, request)
    if new["spec"].get("controllerRef") != old["spec"].get("controllerRef"):
        out.append(invalid_value("spec.controllerRef", new["spec"].get("controllerRef"), "field is immutable"))
    before = {
        t.get("name"): (t, _is_composite(at)) for t, at, depth in _templates(old["spec"], "spec", root=True) if depth
    }
    after = {t.get("name"): (t, at) for t, at, depth in _templates(new["spec"], "spec", root=True) if depth}
    if before.keys() != after.keys():
        return [*out, invalid_value("spec", sorted(map(str, after)), "templates cannot be added or removed")]
    for name, (template, at) in after.items():
        known, composite = before[name]
        out += _changed(template, known, at, (*_OWN, "resourceClaims"), counts=not composite)
    return out


STRATEGIES = {
    "podgroups.scheduling.k8s.io": Strategy(
        admit_create=_admit_group("podgroups"),
        admit_update=_admit_update,
        validate_create=_group,
        validate_update=_group_update,
        validate_status=_status,
        has_status=True,
        has_generation=True,
        reset_fields=("status",),
    ),
    "compositepodgroups.scheduling.k8s.io": Strategy(
        admit_create=_admit_group("compositepodgroups"),
        admit_update=_admit_update,
        validate_create=_composite,
        validate_update=_composite_update,
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
"""Of Kubernetes 1.37; those of 1.36 are in `gangs`."""
