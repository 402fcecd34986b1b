"""The PodGroup of a plain pod: its manifest, and whether it is missing. Volcano: pg-controller. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from volcano_py.api import names, plain_pods
from volcano_py.api.codec import to_manifest
from volcano_py.api.core import Pod
from volcano_py.api.kinds import POD, PODGROUP
from volcano_py.api.scheduling import HARD, PENDING, SOFT, NetworkTopology, PodGroup, PodGroupSpec
from volcano_py.controllers import quota
from volcano_py.controllers.instructions import Create, Instruction, Patch
from volcano_py.controllers.podgroup.owners import Stated, family_of

OWNER_KINDS = ("ReplicaSet", "DaemonSet", "StatefulSet", "Job")
"""Kinds of owners whose annotations a PodGroup inherits."""

_LARGEST = 2**31 - 1


def needs_podgroup(pod: Pod, scheduler_names: Sequence[str]) -> bool:
    """Whether the pod uses one of the schedulers and has no PodGroup."""
    native = pod.spec.scheduling_group is not None  # a PodGroup of scheduling.k8s.io
    return pod.spec.scheduler_name in scheduler_names and not group_of(pod) and not native


def group_of(pod: Pod) -> str:
    return (pod.metadata.annotations or {}).get(names.GROUP_NAME, "")


def podgroup_name(pod: Pod) -> str:
    """All pods of one controller share a PodGroup, or all pods of a gang with several controllers."""
    family = family_of(pod)
    if family is not None:
        return f"podgroup-{family.key}"
    return plain_pods.group_name(pod)


def reconcile(
    pod: Pod,
    podgroup: PodGroup | None,
    owner_annotations: Sequence[Mapping[str, str]],
    update: bool = False,
    of_owner: Stated | None = None,
) -> list[Instruction]:
    """Create the PodGroup, and annotate the pod. `update`: also update an existing PodGroup from this pod.

    `owner_annotations` are those of the pod's owners, in order; empty if they are not inherited. `of_owner`: the values
    in the spec of the owner of a gang with several controllers.
    """
    instructions: list[Instruction] = []
    if podgroup is None:
        instructions.append(Create(PODGROUP, build_podgroup(pod, owner_annotations, of_owner)))
    elif update and is_of(pod, podgroup) and (changes := _changes(podgroup, build_podgroup(pod, owner_annotations))):
        metadata = podgroup.metadata
        instructions.append(Patch(PODGROUP, metadata.namespace, metadata.name, changes, uid=metadata.uid))
    if not group_of(pod):
        body = {"metadata": {"uid": pod.metadata.uid, "annotations": {names.GROUP_NAME: podgroup_name(pod)}}}
        instructions.append(Patch(POD, pod.metadata.namespace, pod.metadata.name, body, "strategic", missing_ok=True))
    return instructions


def is_of(pod: Pod, podgroup: PodGroup) -> bool:
    """Whether a PodGroup is controlled by the pod's controller, or by the pod: the name alone is not sufficient."""
    owner, controller = pod.metadata.controller, podgroup.metadata.controller
    return controller is not None and controller.uid == (owner.uid if owner else pod.metadata.uid)


def build_podgroup(
    pod: Pod, owner_annotations: Sequence[Mapping[str, str]], of_owner: Stated | None = None
) -> dict[str, Any]:
    """The manifest of the PodGroup for this pod.

    With `of_owner` its pods may differ, so minResources is not set.
    """
    members = _min_member(owner_annotations, of_owner.size if of_owner is not None else 1)
    given = pod.metadata.annotations or {}
    spec = PodGroupSpec(
        min_member=members,
        min_resources=dict(quota.total([(quota.usage(_plain_spec(pod)), members)])) if of_owner is None else None,
        priority_class_name=pod.spec.priority_class_name,
        queue=plain_pods.queue_of(pod, owner_annotations),
        network_topology=_topology(given),
    )
    manifest = to_manifest(PodGroup(spec=spec))
    if not spec.queue:
        del manifest["spec"]["queue"]  # the API server's default, or the namespace's
    manifest["metadata"] = {
        "name": podgroup_name(pod),
        "namespace": pod.metadata.namespace,
        "annotations": plain_pods.annotations_of_group(pod, owner_annotations),
        "labels": plain_pods.labels_of_group(pod),
        "ownerReferences": [of_owner.reference]
        if of_owner is not None and of_owner.reference
        else _owner_references(pod),
    }
    manifest["status"] = {"phase": PENDING}
    return manifest


def _owner_references(pod: Pod) -> list[Any]:
    """The pod's owners if one of them controls it, else the pod itself."""
    if pod.metadata.controller is not None:
        owners: list[Any] = msgspec.to_builtins(pod.metadata.owner_references)
        return owners
    return [
        {
            "apiVersion": POD.api_version,
            "kind": POD.kind,
            "name": pod.metadata.name,
            "uid": pod.metadata.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]


def within(annotations: dict[str, str], most: int | None) -> dict[str, str]:
    """The annotations with a minimum of members that is not above the number of pods that exist at a time.

    A larger one could not be met: the owner creates further pods only when these run.
    """
    text = annotations.get(names.GROUP_MIN_MEMBER, "")
    if most is None or not text.isdecimal() or int(text) <= max(most, 1):
        return annotations
    return {**annotations, names.GROUP_MIN_MEMBER: str(max(most, 1))}


def _min_member(owner_annotations: Sequence[Mapping[str, str]], otherwise: int) -> int:
    for inherited in owner_annotations:
        text = inherited.get(names.GROUP_MIN_MEMBER)
        if text is not None:
            return int(text) if text.isdecimal() and int(text) <= _LARGEST else 1
    return otherwise


def _topology(annotations: Mapping[str, str]) -> NetworkTopology | None:
    mode, tier = annotations.get(names.NETWORK_TOPOLOGY_MODE), annotations.get(names.NETWORK_TOPOLOGY_HIGHEST_TIER)
    if mode is None and tier is None:
        return None
    topology = NetworkTopology(mode=SOFT if (mode or "").lower() == SOFT else HARD)
    if tier is not None:
        try:
            topology.highest_tier_allowed = int(tier)
        except ValueError:
            topology.highest_tier_allowed = None
    return topology


def _plain_spec(pod: Pod) -> dict[str, Any]:
    """The parts of the spec that resources are counted from, as plain JSON."""
    spec = pod.spec
    plain: dict[str, Any] = {
        "containers": msgspec.to_builtins(spec.containers),
        "initContainers": msgspec.to_builtins(spec.init_containers),
        "overhead": spec.overhead,
        "resources": msgspec.to_builtins(spec.resources),
    }
    return plain


def _changes(podgroup: PodGroup, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """A merge patch to `wanted`. Additions of other clients are kept, and so is the queue once it is set."""
    spec: dict[str, Any] = {}
    new = wanted["spec"]
    if podgroup.spec.min_member != new.get("minMember", 0):
        spec["minMember"] = new.get("minMember", 0)
    if not quota.same(podgroup.spec.min_resources, new.get("minResources")):
        gone = {name: None for name in podgroup.spec.min_resources or {} if name not in new["minResources"]}
        spec["minResources"] = gone | new["minResources"]
    if podgroup.spec.priority_class_name != new.get("priorityClassName", ""):
        spec["priorityClassName"] = new.get("priorityClassName", "")
    if "queue" in new and podgroup.spec.queue != new["queue"]:
        spec["queue"] = new["queue"]
    topology = msgspec.to_builtins(podgroup.spec.network_topology)
    wanted_topology = new.get("networkTopology")
    if topology != wanted_topology:
        gone = dict.fromkeys(topology or ())
        spec["networkTopology"] = None if wanted_topology is None else gone | wanted_topology
    metadata = {}
    for field in ("annotations", "labels"):
        old = getattr(podgroup.metadata, field) or {}
        changed = {key: value for key, value in wanted["metadata"][field].items() if old.get(key) != value}
        if changed:
            metadata[field] = changed
    return {key: value for key, value in (("metadata", metadata), ("spec", spec)) if value}
