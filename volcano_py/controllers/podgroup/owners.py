"""Gangs by owner: which pods of well-known kinds form a gang, and how many start together. Pure.

Volcano groups pods by their controller, which is correct for a batch Job, and sets minMember to 1. The pods of a
JobSet, of a replica of a LeaderWorkerSet and of a SparkApplication have several controllers; labels identify it.

JobSet           label jobset-uid; the pods of the replicatedJobs that start at once
                 (kubernetes-sigs/jobset: "JobSet labels", startupPolicy, dependsOn)
LeaderWorkerSet  label group-key; leaderWorkerTemplate.size, or 1 if workers wait for their leader
                 (kubernetes-sigs/lws: reference "Labels, annotations", startupPolicy)
RayCluster       its controller; head and workers, with the autoscaler minReplicas
                 (ray-project/kuberay: the operator's batch scheduler for Volcano)
SparkApplication label spark-app-selector; 1, because the driver creates the executors
                 (apache/spark: Kubernetes labels; kubeflow/spark-operator: integration with Volcano)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from volcano_py.api import names
from volcano_py.api.core import Pod
from volcano_py.api.resource_types import ResourceType, namespaced_kind

JOBSET = namespaced_kind("jobset.x-k8s.io/v1alpha2", "jobsets", "JobSet")
LEADERWORKERSET = namespaced_kind("leaderworkerset.x-k8s.io/v1", "leaderworkersets", "LeaderWorkerSet")
RAYCLUSTER = namespaced_kind("ray.io/v1", "rayclusters", "RayCluster")
RAYJOB = namespaced_kind("ray.io/v1", "rayjobs", "RayJob")

_JOBSET_UID, _JOBSET_NAME = "jobset.sigs.k8s.io/jobset-uid", "jobset.sigs.k8s.io/jobset-name"
_LWS_GROUP, _LWS_NAME = "leaderworkerset.sigs.k8s.io/group-key", "leaderworkerset.sigs.k8s.io/name"
_SPARK_APP = "spark-app-selector"
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?\Z")

Manifest = Mapping[str, Any]


class Family(NamedTuple):
    """The gang of a pod, if its controller alone does not determine it."""

    key: str
    """The identity of the gang; part of the PodGroup's name."""
    kind: ResourceType | None = None
    """The owner whose spec contains the size; None: the minimum is 1."""
    name: str = ""
    """The owner's name."""


class Stated(NamedTuple):
    """The values of a gang in its owner's spec."""

    size: int
    """Number of pods that start together."""
    annotations: dict[str, str]
    reference: dict[str, Any] | None
    """The owner reference of the PodGroup; None: that of the pod."""


UNKNOWN = Stated(1, {}, None)
"""For an owner that cannot be read: a minimum of 1, so that its pods do not wait forever."""


def family_of(pod: Pod) -> Family | None:
    """The gang of a pod, from its labels and its controller; None if its controller alone determines it."""
    labels, controller = pod.metadata.labels or {}, pod.metadata.controller
    if controller is not None and controller.kind == RAYCLUSTER.kind and _is_of(controller.api_version, RAYCLUSTER):
        return Family(controller.uid, RAYCLUSTER, controller.name)
    for label, kind, name in (
        (_JOBSET_UID, JOBSET, _JOBSET_NAME),
        (_LWS_GROUP, LEADERWORKERSET, _LWS_NAME),
        (_SPARK_APP, None, ""),
    ):
        key = labels.get(label, "")
        if _NAME.match(key) and (kind is None or labels.get(name)):
            return Family(key, kind, labels.get(name, ""))
    return None


def rayjob_of(cluster: Manifest) -> str:
    """The name of the RayJob that has created a RayCluster; empty: none has. KubeRay copies the annotations of a RayJob
    to its RayCluster, but not how long it may run."""
    for owner in cluster["metadata"].get("ownerReferences") or ():
        if owner.get("controller") and owner["kind"] == RAYJOB.kind and _is_of(owner["apiVersion"], RAYJOB):
            return str(owner["name"])
    return ""


def stated(kind: ResourceType, owner: Manifest, rayjob: Manifest | None = None) -> Stated:
    """The values in an owner's manifest, and in that of the RayJob that has created it."""
    meta = owner["metadata"]
    reference = {"apiVersion": kind.api_version, "kind": kind.kind, "name": meta["name"], "uid": meta["uid"]}
    reference |= {"controller": True, "blockOwnerDeletion": True}
    annotations = meta.get("annotations") or {}
    deadline = deadline_of(owner.get("spec") or {}) if kind is JOBSET else None
    if rayjob is not None:
        given = (rayjob.get("spec") or {}).get("activeDeadlineSeconds")
        deadline = given if isinstance(given, int) else None
    return Stated(size_of(kind, owner), with_deadline(annotations, deadline), reference)


def with_deadline(annotations: dict[str, str], seconds: int | None) -> dict[str, str]:
    """The annotations with how long the pods may run, unless they state it."""
    return annotations if seconds is None else {names.MAX_RUN_TIME: f"{seconds}s", **annotations}


def size_of(kind: ResourceType, owner: Manifest) -> int:
    """The number of pods of one gang that start together, from the owner's manifest; at least 1."""
    return max(1, _SIZES[kind](owner.get("spec") or {}))


def _is_of(api_version: str, kind: ResourceType) -> bool:
    return api_version.partition("/")[0] == kind.group


def _jobset(spec: Manifest) -> int:
    return sum(_count(job, "replicas") * pods_at_once(job) for job in jobs_at_once(spec))


def jobs_at_once(spec: Manifest) -> list[Manifest]:
    """The replicatedJobs of a JobSet that start at once. Those that depend on others have no pods yet; a gang that
    included them would never start."""
    jobs = list(spec.get("replicatedJobs") or ())
    if (spec.get("startupPolicy") or {}).get("startupPolicyOrder") == "InOrder":
        jobs = jobs[:1]
    return [job for job in jobs if not job.get("dependsOn")]


def deadline_of(jobset: Manifest) -> int | None:
    """After how many seconds all Jobs of a JobSet that start at once have ended; None: one of them has no deadline."""
    specs = [(job.get("template") or {}).get("spec") or {} for job in jobs_at_once(jobset)]
    deadlines = [spec.get("activeDeadlineSeconds") for spec in specs]
    known = [deadline for deadline in deadlines if isinstance(deadline, int)]
    return max(known) if known and len(known) == len(deadlines) else None


def pods_at_once(replicated: Manifest) -> int:
    """The pods of one Job of a replicatedJob that run at a time."""
    spec = (replicated.get("template") or {}).get("spec") or {}
    parallelism = _count(spec, "parallelism")
    return min(parallelism, _count(spec, "completions")) if spec.get("completions") is not None else parallelism


def _leader_worker_set(spec: Manifest) -> int:
    waits = spec.get("startupPolicy") == "LeaderReady"
    return 1 if waits else _count(spec.get("leaderWorkerTemplate") or {}, "size")


def _ray_cluster(spec: Manifest) -> int:
    """The head and the workers. The autoscaler adds workers above the minimum later."""
    field = "minReplicas" if spec.get("enableInTreeAutoscaling") else "replicas"
    groups = [group for group in spec.get("workerGroupSpecs") or () if not group.get("suspend")]
    return 1 + sum(_count(group, field, absent=0) * _count(group, "numOfHosts") for group in groups)


def _count(of: Manifest, field: str, absent: int = 1) -> int:
    value = of.get(field)
    return value if isinstance(value, int) else absent


_SIZES: dict[ResourceType, Callable[[Manifest], int]] = {
    JOBSET: _jobset,
    LEADERWORKERSET: _leader_worker_set,
    RAYCLUSTER: _ray_cluster,
}
