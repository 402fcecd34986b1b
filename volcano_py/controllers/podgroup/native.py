"""Native groups of JobSets and LeaderWorkerSets, until their controllers create them. Pure. Not in Volcano.

JobSet           root: all replicated Jobs that start at once; below it a group for each replicated Job, of which all
                 Jobs are needed; below that a PodGroup for each Job, of which all pods that run at once are needed
LeaderWorkerSet  root: any of the replicas; below it a PodGroup for each replica, with its size

The groups are those of one pod: those of other pods follow with these.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from volcano_py.api import names
from volcano_py.api.core import Pod
from volcano_py.api.native_groups import NativeGroup
from volcano_py.api.resource_types import COMPOSITE_PODGROUP, NATIVE_PODGROUP_BETA, ResourceType
from volcano_py.controllers.instructions import Create
from volcano_py.controllers.podgroup.owners import JOBSET, LEADERWORKERSET, jobs_at_once, pods_at_once, size_of

Manifest = Mapping[str, Any]


def owner_kind(group: NativeGroup) -> ResourceType:
    return JOBSET if group.part else LEADERWORKERSET


def groups_of(pod: Pod, group: NativeGroup, owner: Manifest) -> list[Create]:
    """The groups of a pod, the root first. `owner`: the JobSet or LeaderWorkerSet."""
    spec = owner.get("spec") or {}
    if not group.part:
        return [
            _composite(pod, group.root, "", None, owner, owner_kind(group)),
            _pod_group(pod, group.name, group.root, size_of(LEADERWORKERSET, owner), owner, LEADERWORKERSET),
        ]
    at_once = jobs_at_once(spec)
    mine: Manifest = next((job for job in spec.get("replicatedJobs") or () if job.get("name") == group.part), {})
    replicas = mine.get("replicas", 1)
    return [
        _composite(pod, group.root, "", max(len(at_once), 1), owner, JOBSET),
        _composite(pod, group.middle, group.root, max(replicas, 1), owner, JOBSET),
        _pod_group(pod, group.name, group.middle, max(pods_at_once(mine), 1), owner, JOBSET),
    ]


def is_of(group: Manifest, owner: Manifest) -> bool:
    """Whether a group belongs to this owner, and not to an earlier one of the same name."""
    references = group["metadata"].get("ownerReferences") or ()
    return any(reference.get("uid") == owner["metadata"]["uid"] for reference in references)


def _composite(pod: Pod, name: str, parent: str, least: int | None, owner: Manifest, kind: ResourceType) -> Create:
    """`least`: None for a group of which one child is enough."""
    policy = {"basic": {}} if least is None else {"gang": {"minGroupCount": least}}
    return Create(COMPOSITE_PODGROUP, _group(COMPOSITE_PODGROUP, pod, name, parent, policy, owner, kind))


def _pod_group(pod: Pod, name: str, parent: str, least: int, owner: Manifest, kind: ResourceType) -> Create:
    policy = {"gang": {"minCount": least}}
    return Create(NATIVE_PODGROUP_BETA, _group(NATIVE_PODGROUP_BETA, pod, name, parent, policy, owner, kind))


def _group(
    rt: ResourceType, pod: Pod, name: str, parent: str, policy: Any, owner: Manifest, kind: ResourceType
) -> dict[str, Any]:
    meta = owner["metadata"]
    reference = {"apiVersion": kind.api_version, "kind": kind.kind, "name": meta["name"], "uid": meta["uid"]}
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": pod.metadata.namespace,
        "ownerReferences": [{**reference, "controller": True, "blockOwnerDeletion": True}],
    }
    queue = (meta.get("annotations") or {}).get(names.POD_QUEUE_NAME)
    if queue:
        metadata["labels"] = {names.QUEUE_NAME: queue}
    spec: dict[str, Any] = {
        "schedulingPolicy": policy,
        "workloadRef": {"workloadName": meta["name"], "templateName": kind.kind.lower()},
    }
    if parent:
        spec["parentCompositePodGroupName"] = parent
    if pod.spec.priority_class_name:
        spec["priorityClassName"] = pod.spec.priority_class_name
    return {"apiVersion": rt.api_version, "kind": rt.kind, "metadata": metadata, "spec": spec}
