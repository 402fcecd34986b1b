"""The objects of a trace: its nodes, and the PodGroups and pods of its jobs, as the API server would have them."""

from __future__ import annotations

from typing import Any

from volcano_py.api import core, names, scheduling
from volcano_py.api.codec import from_manifest
from volcano_py.api.meta import format_time
from volcano_py.scheduler.framework.jobs.owner import OWNER
from volcano_py.simulate.trace.jobs import GPU, TraceJob, TraceNode

EPOCH = 1_767_225_600.0
"""The start of every trace, in seconds since the epoch."""
MODEL_LABEL = "gpu-model"
GPU_RESOURCE = f"trace/{GPU}"
"""The name of `GPU` as a resource of nodes and pods."""
NAMESPACE = "trace"


def queue_object(name: str) -> scheduling.Queue:
    return from_manifest(scheduling.Queue, {"metadata": {"name": name, "uid": name}, "status": {"state": "Open"}})


def node_object(node: TraceNode) -> core.Node:
    have = {**_amounts(node.capacity), "pods": "1000"}
    labels = {"kubernetes.io/hostname": node.name, MODEL_LABEL: node.model}
    manifest = {
        "metadata": {"name": node.name, "uid": node.name, "labels": labels},
        "status": {"allocatable": have, "capacity": have},
    }
    return from_manifest(core.Node, manifest)


def group_object(job: TraceJob, queue: str, phase: str = "Pending") -> scheduling.PodGroup:
    metadata: dict[str, Any] = {
        "name": job.name,
        "namespace": NAMESPACE,
        "uid": job.name,
        "creationTimestamp": format_time(EPOCH + job.submitted),
    }
    if job.user:
        metadata["labels"] = {OWNER: job.user}
    spec = {"minMember": job.pods, "queue": queue}
    return from_manifest(scheduling.PodGroup, {"metadata": metadata, "spec": spec, "status": {"phase": phase}})


def pod_object(job: TraceJob, index: int, attempt: int = 0) -> core.Pod:
    spec: dict[str, Any] = {
        "schedulerName": names.SCHEDULER_NAME,
        "containers": [{"name": "main", "image": "trace", "resources": {"requests": _amounts(job.requests)}}],
    }
    if job.limit is not None:
        spec["activeDeadlineSeconds"] = max(1, int(job.limit))
    if job.models:
        expression = {"key": MODEL_LABEL, "operator": "In", "values": list(job.models)}
        required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    manifest = {
        "metadata": {
            "name": f"{job.name}-{index}",
            "namespace": NAMESPACE,
            "uid": f"{job.name}-{index}-{attempt}",
            "creationTimestamp": format_time(EPOCH + job.submitted),
            "annotations": {names.GROUP_NAME: job.name},
        },
        "spec": spec,
        "status": {"phase": "Pending"},
    }
    return from_manifest(core.Pod, manifest)


def _amounts(of: dict[str, int]) -> dict[str, str]:
    units = {"cpu": "m", "memory": "Mi", GPU: ""}
    return {GPU_RESOURCE if r == GPU else r: f"{amount}{units[r]}" for r, amount in of.items() if amount}
