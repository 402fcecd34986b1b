"""Creates the pods of a Job. Volcano: createJobPod."""

from __future__ import annotations

import copy
import hashlib
from typing import Any

from volcano_py.api import names
from volcano_py.api.batch import DEFAULT_TASK_NAME, Job, Task
from volcano_py.api.kinds import JOB
from volcano_py.controllers.job.observed import pod_name
from volcano_py.webhooks.job_defaults import HOST_NETWORK_DNS

LONGEST_LABEL = 63

_ANNOTATIONS = (names.PREEMPTABLE, names.COOLDOWN_TIME, names.REVOCABLE_ZONE)
_LABELS = (names.PREEMPTABLE, names.COOLDOWN_TIME)


def owner_reference(job: Job) -> dict[str, Any]:
    """The Job as the controller of its objects."""
    return {
        "apiVersion": JOB.api_version,
        "kind": JOB.kind,
        "name": job.metadata.name,
        "uid": job.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def podgroup_name(job: Job) -> str:
    return f"{job.metadata.name}-{job.metadata.uid}"


def stable_suffix(*parts: str) -> str:
    """A suffix of twelve characters, determined by the parts: nothing is created twice after a crash."""
    number = int.from_bytes(hashlib.sha256("\0".join(parts).encode()).digest()[:8])
    digits = "0123456789abcdefghijklmnopqrstuvwxyz"
    text = ""
    for _ in range(12):
        number, digit = divmod(number, 36)
        text += digits[digit]
    return text


def build_pod(job: Job, task: Task, index: int, *, forwarding: bool = False) -> dict[str, Any]:
    """The manifest of one pod, before plugins change it."""
    template = task.template or {}
    metadata = template.get("metadata") or {}
    annotations, labels = _identity(job, task, index)
    if forwarding:
        annotations[names.JOB_FORWARDING] = labels[names.JOB_FORWARDING] = "true"
    spec: dict[str, Any] = copy.deepcopy(template.get("spec") or {})
    if not spec.get("schedulerName") and job.spec.scheduler_name:
        spec["schedulerName"] = job.spec.scheduler_name
    if not spec.get("priorityClassName") and job.spec.priority_class_name:
        spec["priorityClassName"] = job.spec.priority_class_name
    if spec.get("hostNetwork") and not spec.get("dnsPolicy"):
        spec["dnsPolicy"] = HOST_NETWORK_DNS
    _mount_volumes(job, spec)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod_name(job, task.name or DEFAULT_TASK_NAME, index),
            "namespace": job.metadata.namespace,
            "ownerReferences": [owner_reference(job)],
            "labels": (metadata.get("labels") or {}) | labels,
            "annotations": (metadata.get("annotations") or {}) | annotations,
        },
        "spec": spec,
    }


def _identity(job: Job, task: Task, index: int) -> tuple[dict[str, str], dict[str, str]]:
    """The annotations and labels that identify a pod."""
    name = task.name or DEFAULT_TASK_NAME
    common = {
        names.TASK_INDEX: str(index),
        names.TASK_SPEC: name,
        names.JOB_NAME: job.metadata.name,
        names.QUEUE_NAME: job.spec.queue,
    }
    annotations = common | {
        names.GROUP_NAME: podgroup_name(job),
        names.JOB_VERSION: str(job.status.version),
        names.JOB_RETRY_COUNT: str(job.status.retry_count),
        names.TEMPLATE_UID: f"{job.metadata.name}-{name}",
    }
    labels = common | {names.JOB_NAMESPACE: job.metadata.namespace}
    if task.topology_policy:
        annotations[names.NUMA_TOPOLOGY_POLICY] = task.topology_policy
    given = job.metadata.annotations or {}
    budget = names.JDB_MIN_AVAILABLE if names.JDB_MIN_AVAILABLE in given else names.JDB_MAX_UNAVAILABLE
    annotations.update({key: given[key] for key in (*_ANNOTATIONS, budget) if key in given})
    labels.update({key: value for key, value in (job.metadata.labels or {}).items() if key in _LABELS})
    if task.partition_policy is not None:
        size = task.partition_policy.partition_size
        labels[names.PARTITION_ID] = str(index // size if size > 0 and index > 0 else 0)
    return annotations, labels


def _volume_name(job: Job, claim: str) -> str:
    """The volume of a claim: the Job's name with a suffix if that is a valid DNS label, else `volume-SUFFIX`."""
    suffix = stable_suffix(job.metadata.uid, claim)
    name = f"{job.metadata.name}-{suffix}"
    return name if len(name) <= LONGEST_LABEL and "." not in name else f"volume-{suffix}"


def _mount_volumes(job: Job, spec: dict[str, Any]) -> None:
    """Mount each claim of the Job in all regular containers; duplicate claims are mounted once."""
    seen = set[str]()
    for volume in job.spec.volumes or ():
        claim = volume.volume_claim_name
        if not claim or claim in seen:
            continue
        seen.add(claim)
        name = _volume_name(job, claim)
        spec.setdefault("volumes", []).append({"name": name, "persistentVolumeClaim": {"claimName": claim}})
        for container in spec.get("containers") or ():
            mount = {"name": name, "mountPath": volume.mount_path}
            container.setdefault("volumeMounts", []).append(mount)
