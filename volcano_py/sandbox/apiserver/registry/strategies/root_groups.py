"""Workloads, PodGroups and CompositePodGroups of scheduling.k8s.io/v1beta1 and v1alpha3, as Kubernetes 1.37 has them:
fields with feature gates, defaults, priority, validation.

Kubernetes: pkg/registry/scheduling, pkg/apis/scheduling/validation, plugin/pkg/admission/scheduling.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from volcano_py.sandbox.apiserver.apimachinery import features
from volcano_py.sandbox.apiserver.apimachinery.conditions import condition_causes
from volcano_py.sandbox.apiserver.apimachinery.errors import (
    Cause,
    duplicate,
    forbidden,
    invalid_value,
    required,
    too_many,
)
from volcano_py.sandbox.apiserver.registry import declared
from volcano_py.sandbox.apiserver.registry.api import Api
from volcano_py.sandbox.apiserver.registry.declared import LABEL_KEY, LONG_NAME, PATH_SEGMENT, SHORT_NAME, Declared
from volcano_py.sandbox.apiserver.registry.request import Request
from volcano_py.sandbox.apiserver.registry.strategies.priority import COMPUTED, resolved
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
_DEEPEST = 4


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
        if features.POLICY in api.features:
            spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
        found = resolved(api, (_GROUP, plural), group, spec)
        spec["priority"] = found.value
        if found.name:
            spec["priorityClassName"] = found.name
        policy = spec.get("preemptionPolicy")
        if policy not in (None, found.policy):
            what = "pod group" if plural == "podgroups" else "composite pod group"
            text = f"the string value of PreemptionPolicy ({policy}) must not be provided in {what} spec; "
            text += COMPUTED.format(found.policy)
            raise forbidden(_GROUP, plural, group["metadata"].get("name", ""), text)
        if plural == "podgroups":
            finalizers = group["metadata"].setdefault("finalizers", [])
            if PROTECTION not in finalizers:
                finalizers.append(PROTECTION)

    return admit


def _admit_update(api: Api, new: Object, old: Object, request: Request) -> None:
    _drop_gated(api, new["spec"], old["spec"])


def _admit_workload(api: Api, workload: Object, request: Request) -> None:
    for spec in (workload["spec"], *_templates(workload["spec"])):
        _drop_gated(api, spec, {})


# --- types -----------------------------------------------------------------------------------------------------------


def _policy(count: str) -> tuple[Declared, ...]:
    gang = (Declared(count, required=True, least=1),)
    return (
        Declared("basic", member=True, immutable=True),
        Declared("gang", lambda: gang, member=True, fixed=True),
    )


_POLICY = _policy("minCount")
_COMPOSITE_POLICY = _policy("minGroupCount")
_KEY = (Declared("key", required=True, form=LABEL_KEY),)
CONSTRAINTS = (Declared("topology", lambda: _KEY, items=True, most=1),)
CLAIM = (
    Declared("name", required=True, form=SHORT_NAME),
    Declared("resourceClaimName", pointer=True, member=True, form=LONG_NAME),
    Declared("resourceClaimTemplateName", pointer=True, member=True, form=LONG_NAME),
)
MODE = (Declared("single", member=True), Declared("all", member=True))
_REFERENCE = (
    Declared("workloadName", required=True, form=LONG_NAME),
    Declared("templateName", required=True, form=SHORT_NAME),
)
_PARENT = Declared("parentCompositePodGroupName", pointer=True, form=LONG_NAME, immutable=True)
_NAME = Declared("name", required=True, form=SHORT_NAME)
_CLAIMS = Declared("resourceClaims", lambda: CLAIM, key="name", most=4, immutable=True)
_OWN = (
    Declared("disruptionMode", lambda: MODE, immutable=True),
    Declared("priorityClassName", form=LONG_NAME, immutable=True),
    Declared("priority", most=1_000_000_000, immutable=True),
    Declared("preemptionPolicy", choices=("Never", "PreemptLowerPriority"), immutable=True),
)
_CONSTRAINED = Declared("schedulingConstraints", lambda: CONSTRAINTS, immutable=True)
_OF_POD_GROUP = (Declared("schedulingPolicy", lambda: _POLICY), _CONSTRAINED, _CLAIMS, *_OWN)
_POD_GROUP = (_PARENT, Declared("workloadRef", lambda: _REFERENCE, immutable=True), *_OF_POD_GROUP)
_COMPOSITE = (
    _PARENT,
    Declared("workloadRef", lambda: _REFERENCE, required=True, immutable=True),
    Declared("schedulingPolicy", lambda: _COMPOSITE_POLICY, immutable=True),
    _CONSTRAINED,
    *_OWN,
)
_LEAF = (_NAME, *_OF_POD_GROUP)


def _children(*, member: bool) -> tuple[Declared, ...]:
    rules: dict[str, Any] = {"key": "name", "most": 8, "fixed": True, "member": member}
    return (
        Declared("podGroupTemplates", lambda: _LEAF, always=("schedulingConstraints",), **rules),
        Declared("compositePodGroupTemplates", lambda: _BRANCH, **rules),
    )


_BRANCH = (
    _NAME,
    Declared("schedulingPolicy", lambda: _COMPOSITE_POLICY),
    _CONSTRAINED,
    *_OWN,
    *_children(member=False),
)
CONTROLLER = (
    Declared("apiGroup", form=LONG_NAME),
    Declared("kind", required=True, form=PATH_SEGMENT),
    Declared("name", required=True, form=PATH_SEGMENT),
)
_WORKLOAD = (Declared("controllerRef", lambda: CONTROLLER, immutable=True), *_children(member=True))


# --- PodGroups and CompositePodGroups --------------------------------------------------------------------------------


def _group(group: Object, request: Request) -> list[Cause]:
    return _parent(group) + declared.causes(_POD_GROUP, group["spec"], None, "spec")


def _group_update(new: Object, old: Object, request: Request) -> list[Cause]:
    return declared.causes(_POD_GROUP, new["spec"], old["spec"], "spec")


def _parent(group: Object) -> list[Cause]:
    spec = group["spec"]
    if spec.get("parentCompositePodGroupName") is None or spec.get("workloadRef") is not None:
        return []
    return [required("spec.workloadRef", "must be set when parentCompositePodGroupName is set")]


def _composite(group: Object, request: Request) -> list[Cause]:
    return declared.causes(_COMPOSITE, group["spec"], None, "spec")


def _composite_update(new: Object, old: Object, request: Request) -> list[Cause]:
    return declared.causes(_COMPOSITE, new["spec"], old["spec"], "spec")


def status_causes(new: Object, old: Object, request: Request) -> list[Cause]:
    """The errors in the status of a group."""
    status = new.get("status") or {}
    out = condition_causes(status.get("conditions") or [], "status.conditions")
    path, rows = "status.resourceClaimStatuses", status.get("resourceClaimStatuses") or []
    names = {claim.get("name") for claim in new["spec"].get("resourceClaims") or []}
    if len(rows) > 4:
        out.append(too_many(path, len(rows), 4))
    for index, row in enumerate(rows):
        if row.get("name") not in names:
            text = "must match the name of an entry in `spec.resourceClaims`"
            out.append(invalid_value(f"{path}[{index}].name", row.get("name", ""), text))
    return out


# --- Workloads -------------------------------------------------------------------------------------------------------


def _templates(spec: Object) -> Iterator[Object]:
    """All templates of a Workload."""
    for field in ("podGroupTemplates", "compositePodGroupTemplates"):
        for template in spec.get(field) or []:
            yield template
            yield from _templates(template)


def _workload(workload: Object, request: Request) -> list[Cause]:
    return _tree(workload["spec"]) + declared.causes(_WORKLOAD, workload["spec"], None, "spec")


def _workload_update(new: Object, old: Object, request: Request) -> list[Cause]:
    return _tree(new["spec"]) + declared.causes(_WORKLOAD, new["spec"], old["spec"], "spec")


def _tree(spec: Object) -> list[Cause]:
    """The errors that concern more than one template."""
    known = {template.get("name") for template in spec.get("podGroupTemplates") or []}
    out = _names(spec, "spec", known)
    path = "spec.compositePodGroupTemplates"
    for index, template in enumerate(spec.get("compositePodGroupTemplates") or []):
        if _levels(template) >= _DEEPEST:
            below = template.get("compositePodGroupTemplates") or []
            out.append(invalid_value(f"{path}[{index}]", below, f"maximum template hierarchy depth is {_DEEPEST}"))
    if len(set(map(_priority, _templates(spec)))) > 1:
        flat = len(set(map(_priority, spec.get("podGroupTemplates") or []))) > 1
        several = "all priority and priorityClassName values must be identical, detected multiple values"
        out.append(invalid_value("spec", None, "detected multiple priority configurations" if flat else several))
    return out + _childless(spec, "spec")


def _priority(template: Object) -> tuple[str, Any]:
    return template.get("priorityClassName", ""), template.get("priority")


def _names(of: Object, path: str, known: set[Any]) -> list[Cause]:
    """The composite templates below `of` whose names, or whose children's, are those of other lists."""
    out: list[Cause] = []
    branches = of.get("compositePodGroupTemplates") or []
    for index, template in enumerate(branches):
        if template.get("name") in known:
            out.append(duplicate(f"{path}.compositePodGroupTemplates[{index}].name", template.get("name", "")))
    known |= {template.get("name") for template in branches}
    for index, template in enumerate(branches):
        at = f"{path}.compositePodGroupTemplates[{index}]"
        leaves = template.get("podGroupTemplates") or []
        for number, leaf in enumerate(leaves):
            if leaf.get("name") in known:
                out.append(duplicate(f"{at}.podGroupTemplates[{number}].name", leaf.get("name", "")))
        known |= {leaf.get("name") for leaf in leaves}
        out += _names(template, at, known)
    return out


def _levels(template: Object) -> int:
    """The levels of composite templates, this one included."""
    return 1 + max(map(_levels, template.get("compositePodGroupTemplates") or []), default=0)


def _childless(of: Object, path: str) -> list[Cause]:
    out: list[Cause] = []
    for index, template in enumerate(of.get("compositePodGroupTemplates") or []):
        at = f"{path}.compositePodGroupTemplates[{index}]"
        if not (template.get("podGroupTemplates") or template.get("compositePodGroupTemplates")):
            text = "must have at least one child PodGroupTemplate or CompositePodGroupTemplate"
            out.append(invalid_value(at, template.get("name", ""), text))
        out += _childless(template, at)
    return out


def keep_spec_and_metadata(new: Object, old: Object, request: Request) -> None:
    """A write of the status changes neither spec nor metadata."""
    new["spec"] = old["spec"]
    for field in ("labels", "annotations", "finalizers", "ownerReferences"):
        new["metadata"].pop(field, None)
        if field in old["metadata"]:
            new["metadata"][field] = old["metadata"][field]


STRATEGIES = {
    "podgroups.scheduling.k8s.io": Strategy(
        admit_create=_admit_group("podgroups"),
        admit_update=_admit_update,
        validate_create=_group,
        validate_update=_group_update,
        prepare_status=keep_spec_and_metadata,
        validate_status=status_causes,
        has_status=True,
        reset_fields=("status",),
        reset_status_fields=("metadata", "spec"),
    ),
    "compositepodgroups.scheduling.k8s.io": Strategy(
        admit_create=_admit_group("compositepodgroups"),
        admit_update=_admit_update,
        validate_create=_composite,
        validate_update=_composite_update,
        prepare_status=keep_spec_and_metadata,
        validate_status=status_causes,
        has_status=True,
        reset_fields=("status",),
        reset_status_fields=("metadata", "spec"),
    ),
    "workloads.scheduling.k8s.io": Strategy(
        admit_create=_admit_workload,
        validate_create=_workload,
        validate_update=_workload_update,
    ),
}
"""Of Kubernetes 1.37; those of 1.36 are in `gangs`."""
