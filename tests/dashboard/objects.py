"""Objects of a small cluster, as an API server sends them, and what the dashboard keeps of them."""

from __future__ import annotations

from typing import Any

import msgspec

from volcano_py.api import batch, core, scheduling, topology
from volcano_py.api.reservation import Reservation
from volcano_py.dashboard import kept

Manifest = dict[str, Any]
UID = "7f9c0d52-0000-4000-8000-000000000001"
CREATED = "2026-01-01T00:00:00Z"


def metadata(name: str, namespace: str = "", **more: Any) -> Manifest:
    found = {"name": name, "uid": UID, "resourceVersion": "1", "creationTimestamp": CREATED, **more}
    return found | ({"namespace": namespace} if namespace else {})


def queue(name: str, parent: str = "", allocated: Manifest | None = None, **spec: Any) -> Manifest:
    spec |= {"parent": parent} if parent else {}
    status = {"state": "Open", "allocated": allocated or {}}
    whole = {"metadata": metadata(name), "spec": {"weight": 1, **spec}, "status": status}
    return kept.queue(msgspec.convert(whole, scheduling.Queue))


def reservation(name: str, status: Manifest | None = None, **spec: Any) -> Reservation:
    spec = {"startTime": CREATED, "duration": "2h", "nodes": ["n-1"], **spec}
    return msgspec.convert({"metadata": metadata(name), "spec": spec, "status": status or {}}, Reservation)


def group(
    name: str, phase: str, queue: str = "vision", why: str = "", job: str = "", limit: str = "", **more: Any
) -> Manifest:
    reason = more.pop("code", "NodeResources")
    conditions = [{"type": "Waiting", "status": "True", "reason": reason, "message": why}] if why else []
    annotations = {"annotations": {"volcano.sh/max-run-time": limit}} if limit else {}
    conditions += more.pop("conditions", [])
    owners = [{"kind": "Job", "name": job, "uid": UID, "controller": True}] if job else []
    whole = {
        "metadata": metadata(f"{job}-{UID}" if job else name, "lab", ownerReferences=owners, **annotations),
        "spec": {"queue": queue, "minMember": 4, "minResources": {"cpu": "4"}},
        "status": {"phase": phase, "conditions": conditions, **more},
    }
    return kept.group(msgspec.convert(whole, scheduling.PodGroup))


def job(name: str, phase: str, *history: tuple[str, str], queue: str = "vision", **spec: Any) -> Manifest:
    """`history`: pairs of a phase and its time."""
    whole = {
        "metadata": metadata(name, "lab"),
        "spec": {
            "queue": queue,
            "minAvailable": 3,
            "schedulerName": "volcano",
            "tasks": [
                {"name": "worker", "replicas": 3, "template": {}},
                {"name": "chief", "replicas": 1, "template": {}},
            ],
            **spec,
        },
        "status": {
            "state": {"phase": phase},
            "running": 2,
            "conditions": [{"status": s, "lastTransitionTime": t} for s, t in history],
        },
    }
    return kept.job(msgspec.convert(whole, batch.Job))


def node(name: str, ready: bool = True, labels: Manifest | None = None, **allocatable: str) -> Manifest:
    have = {"cpu": "32", "memory": "128Gi", "pods": "110", **allocatable}
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    whole = {
        "metadata": metadata(name, labels=labels or {}),
        "spec": {},
        "status": {"allocatable": have, "conditions": conditions},
    }
    return kept.node(msgspec.convert(whole, core.Node))


def pod(
    name: str, node: str = "", phase: str = "Running", group: str = "", role: str = "", **requests: str
) -> Manifest:
    annotations = {"scheduling.k8s.io/group-name": group, "volcano.sh/task-spec": role}
    waits = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "2 nodes are full"}]
    whole = {
        "metadata": metadata(name, "lab", annotations=annotations),
        "spec": {"nodeName": node, "containers": [{"name": "main", "resources": {"requests": requests}}]},
        "status": {"phase": phase, "conditions": [] if node else waits},
    }
    return kept.pod(msgspec.convert(whole, core.Pod))


def hyper_node(name: str, tier: int, kind: str, *members: str) -> topology.HyperNode:
    listed = [{"type": kind, "selector": {"exactMatch": {"name": member}}} for member in members]
    return msgspec.convert({"metadata": metadata(name), "spec": {"tier": tier, "members": listed}}, topology.HyperNode)


def eviction(pod: str, time: str, evictor: str = "", action: str = "reclaim") -> Manifest:
    whole: Manifest = {
        "metadata": metadata(f"{pod}.1", "lab"),
        "involvedObject": {"kind": "Pod", "namespace": "lab", "name": pod},
        "reason": "Evict",
        "message": f"Pod is evicted, because of {action}",
        "lastTimestamp": time,
    }
    if evictor:
        whole["related"] = {"kind": "PodGroup", "namespace": "lab", "name": evictor}
    return kept.event(msgspec.convert(whole, kept.SeenEvent))
