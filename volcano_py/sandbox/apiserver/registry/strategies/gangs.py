"""Workloads and PodGroups of scheduling.k8s.io/v1alpha2: fields with feature gates, priority, validation.

Kubernetes: pkg/registry/scheduling and pkg/apis/scheduling.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from volcano_py.sandbox.apiserver.apimachinery import features
from volcano_py.sandbox.apiserver.apimachinery.errors import Cause, forbidden
from volcano_py.sandbox.apiserver.registry import declared
from volcano_py.sandbox.apiserver.registry.api import Api
from volcano_py.sandbox.apiserver.registry.declared import LONG_NAME, SHORT_NAME, Declared
from volcano_py.sandbox.apiserver.registry.request import Request
from volcano_py.sandbox.apiserver.registry.strategies.priority import resolved
from volcano_py.sandbox.apiserver.registry.strategies.root_groups import (
    CLAIM,
    CONSTRAINTS,
    CONTROLLER,
    PROTECTION,
    keep_spec_and_metadata,
    status_causes,
)
from volcano_py.sandbox.apiserver.registry.strategy import Strategy

Object = dict[str, Any]

_GATED = {
    features.TOPOLOGY: ("schedulingConstraints",),
    features.PREEMPTION: ("disruptionMode", "priorityClassName", "priority"),
    features.CLAIMS: ("resourceClaims",),
}
"""Fields of a PodGroup and of a template that are dropped while their gate is disabled."""
_GANG = (Declared("minCount", required=True, least=1),)
_POLICY = (Declared("basic", member=True), Declared("gang", lambda: _GANG, member=True))
_WORKLOAD_REFERENCE = (
    Declared("workloadName", required=True, form=LONG_NAME),
    Declared("podGroupTemplateName", required=True, form=SHORT_NAME),
)
_REFERENCE = (Declared("workload", lambda: _WORKLOAD_REFERENCE, member=True),)
_OWN = (
    Declared("schedulingPolicy", lambda: _POLICY, immutable=True),
    Declared("schedulingConstraints", lambda: CONSTRAINTS, immutable=True),
    Declared("resourceClaims", lambda: CLAIM, key="name", most=4, immutable=True),
    Declared("disruptionMode", choices=("Pod", "PodGroup"), immutable=True),
    Declared("priorityClassName", form=LONG_NAME, immutable=True),
    Declared("priority", immutable=True),
)
_GROUP = (Declared("podGroupTemplateRef", lambda: _REFERENCE, immutable=True), *_OWN)
_TEMPLATE = (Declared("name", required=True, form=SHORT_NAME), *_OWN)
_WORKLOAD = (
    Declared("controllerRef", lambda: CONTROLLER, immutable=True),
    Declared(
        "podGroupTemplates",
        lambda: _TEMPLATE,
        required=True,
        key="name",
        most=8,
        immutable=True,
        always=("schedulingConstraints",),
    ),
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
    _check_template(api, group)
    finalizers = group["metadata"].setdefault("finalizers", [])
    if PROTECTION not in finalizers:
        finalizers.append(PROTECTION)
    if features.PREEMPTION not in api.features:
        return
    spec.setdefault("disruptionMode", "Pod")
    found = resolved(api, ("scheduling.k8s.io", "podgroups"), group, spec)
    spec["priority"] = found.value
    if found.name:
        spec["priorityClassName"] = found.name


def _check_template(api: Api, group: Object) -> None:
    """Raises StatusError if the Workload of a group, or its template, does not exist."""
    reference = ((group["spec"].get("podGroupTemplateRef") or {}).get("workload")) or {}
    workload, template = reference.get("workloadName"), reference.get("podGroupTemplateName")
    if not workload or not template:
        return
    meta = group["metadata"]
    found = api.resource("scheduling.k8s.io", "workloads").collection.get(meta["namespace"], workload)
    if found is None:
        text = f'PodGroup rejected: Workload "{workload}" not found'
    elif all(row.get("name") != template for row in found.load()["spec"].get("podGroupTemplates") or ()):
        text = f'PodGroup rejected: PodGroupTemplate "{template}" not found in Workload "{workload}"'
    else:
        return
    raise forbidden("scheduling.k8s.io", "podgroups", meta.get("name", ""), text)


def _admit_workload(api: Api, workload: Object, request: Request) -> None:
    for template in workload["spec"].get("podGroupTemplates") or []:
        _drop_gated(api, template)


# --- validation ------------------------------------------------------------------------------------------------------


def _causes(fields: Sequence[Declared], obj: Object, request: Request) -> list[Cause]:
    return declared.causes(fields, obj["spec"], None, "spec")


def _causes_of_update(fields: Sequence[Declared], new: Object, old: Object, request: Request) -> list[Cause]:
    return declared.causes(fields, new["spec"], old["spec"], "spec")


STRATEGIES = {
    "podgroups.scheduling.k8s.io": Strategy(
        admit_create=_admit_group,
        validate_create=partial(_causes, _GROUP),
        validate_update=partial(_causes_of_update, _GROUP),
        validate_status=status_causes,
        prepare_status=keep_spec_and_metadata,
        has_status=True,
        reset_fields=("status",),
        reset_status_fields=("metadata", "spec"),
    ),
    "workloads.scheduling.k8s.io": Strategy(
        admit_create=_admit_workload,
        validate_create=partial(_causes, _WORKLOAD),
        validate_update=partial(_causes_of_update, _WORKLOAD),
    ),
}
