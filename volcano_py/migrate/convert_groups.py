"""Workloads and PodGroups of scheduling.k8s.io/v1alpha2 (Kubernetes 1.36) as manifests of v1beta1 (1.37).

Kubernetes has no conversion between them: their objects must be deleted before the upgrade, and created again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from volcano_py.api.gang import DISRUPTED_WHOLE, V1BETA1

Manifest = dict[str, Any]
_KEPT = ("name", "namespace", "labels", "annotations", "ownerReferences")
_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class ConvertedGroups(NamedTuple):
    """Manifests to create on 1.37: Workloads first. `warnings`: what the user must decide."""

    manifests: list[Manifest]
    warnings: list[str]


def converted_groups(
    groups: Iterable[Manifest], workloads: Iterable[Manifest], pods: Iterable[Manifest]
) -> ConvertedGroups:
    """Convert all. `pods`: of the groups; a group without a priority gets the class of its pods, because kube-scheduler
    1.37 rejects a group whose pods have another priority."""
    classes: dict[tuple[str, str], set[str]] = {}
    for pod in pods:
        spec = pod.get("spec") or {}
        name = (spec.get("schedulingGroup") or {}).get("podGroupName")
        if name:
            key = pod["metadata"].get("namespace", ""), name
            classes.setdefault(key, set()).add(spec.get("priorityClassName") or "")
    made, warnings = [], []
    for workload in workloads:
        spec = dict(workload.get("spec") or {})
        spec["podGroupTemplates"] = [_template(each) for each in spec.get("podGroupTemplates") or ()]
        made.append(_object("Workload", workload, spec))
    for group in groups:
        spec = _template(group.get("spec") or {})
        reference = ((spec.pop("podGroupTemplateRef", None)) or {}).get("workload") or {}
        if reference:
            names = {"workloadName": "workloadName", "templateName": "podGroupTemplateName"}
            spec["workloadRef"] = {new: reference[old] for new, old in names.items() if reference.get(old)}
        metadata = group["metadata"]
        found = classes.get((metadata.get("namespace", ""), metadata["name"]), set())
        if not spec.get("priorityClassName") and len(found) == 1 and (of_pods := next(iter(found))):
            spec["priorityClassName"] = of_pods
        elif found - {spec.get("priorityClassName") or ""}:
            shown = ", ".join(sorted(name or "none" for name in found))
            warnings.append(
                f"PodGroup {metadata.get('namespace')}/{metadata['name']} has priorityClassName "
                f"{spec.get('priorityClassName') or 'none'}, and its pods have {shown}: kube-scheduler 1.37 and "
                "profiles reject such a group; set one class, and create the pods that differ again"
            )
        made.append(_object("PodGroup", group, spec))
    return ConvertedGroups(made, warnings)


def _template(old: Manifest) -> Manifest:
    """The fields that a PodGroup and a template of one have in common."""
    spec = {key: value for key, value in old.items() if key != "priority"}  # admission sets the priority
    mode = spec.get("disruptionMode")
    if isinstance(mode, str):
        spec["disruptionMode"] = {"all": {}} if mode == DISRUPTED_WHOLE else {"single": {}}
    return spec


def _object(kind: str, old: Manifest, spec: Manifest) -> Manifest:
    metadata = {key: old["metadata"][key] for key in _KEPT if old["metadata"].get(key)}
    if _APPLIED in metadata.get("annotations", {}):
        kept = {key: value for key, value in metadata["annotations"].items() if key != _APPLIED}
        metadata["annotations"] = kept
        if not kept:
            del metadata["annotations"]
    return {"apiVersion": V1BETA1, "kind": kind, "metadata": metadata, "spec": spec}
