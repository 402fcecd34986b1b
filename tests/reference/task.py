"""Pods as tasks. Volcano: TaskInfo."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tests.reference.request import pod_request
from tests.reference.resource import Resource

GROUP_ANNOTATION = "scheduling.k8s.io/group-name"
ROLE = "volcano.sh/task-spec"
PRIORITY_ANNOTATION = "volcano.sh/task-priority"
PREEMPTABLE = "volcano.sh/preemptable"
ZONE = "volcano.sh/revocable-zone"
QUEUE_GATE = "scheduling.volcano.sh/queue-allocation-gate"

ALLOCATED_STATUS = ("Bound", "Binding", "Running", "Allocated")


@dataclass
class Task:
    pod: dict[str, Any]
    uid: str
    namespace: str
    name: str
    job: str
    role: str
    priority: int
    created: float
    resreq: Resource
    """Including init containers, as in InitResreq: they are the same amounts."""
    gates: list[str]
    status: str
    node: str
    preemptable: bool = True
    revocable_zone: str = ""
    """`*` if it may be placed on nodes of revocable zones."""
    eviction_occurred: bool = False
    """Whether pods are evicted for it."""
    job_hyper_node: str = ""
    """The lowest HyperNode that contains the placed tasks of its sub-job. Volcano: JobAllocatedHyperNode."""
    forgets_nomination: bool = False
    """Whether its pod's nomination no longer counts in this session."""
    last_try: tuple[str, str, bool] | None = None
    """Status, node and eviction_occurred of a discarded statement. Volcano: LastTransaction."""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def best_effort(self) -> bool:
        return self.resreq.is_empty()

    @property
    def gated(self) -> bool:
        return bool(self.gates)

    @property
    def gated_by_others(self) -> bool:
        """Whether it has a gate other than Volcano's own."""
        return self.gated and self.gates != [QUEUE_GATE]

    @property
    def pod_priority(self) -> int:
        return self.pod["spec"].get("priority") or 0

    @property
    def reported_node(self) -> str:
        """The node in the pod's condition. Volcano: TaskSchedulingReason."""
        status, node, eviction = self.last_try or (self.status, self.node, self.eviction_occurred)
        return node if status == "Pipelined" and eviction else ""

    @property
    def nominated(self) -> str:
        if self.forgets_nomination:
            return ""
        return self.pod.get("status", {}).get("nominatedNodeName") or ""


def task_of(pod: dict[str, Any]) -> Task:
    meta, spec = pod["metadata"], pod["spec"]
    annotations, labels = meta.get("annotations") or {}, meta.get("labels") or {}
    namespace = meta.get("namespace", "default")
    group = annotations.get(GROUP_ANNOTATION)
    return Task(
        pod=pod,
        uid=meta.get("uid", ""),
        namespace=namespace,
        name=meta["name"],
        job=f"{namespace}/{group}" if group else "",
        role=annotations.get(ROLE) or labels.get(ROLE) or "",
        priority=_priority(spec, annotations),
        created=timestamp(meta),
        resreq=pod_request(pod),
        gates=[g["name"] for g in spec.get("schedulingGates") or []],
        status=status_of(pod),
        node=spec.get("nodeName") or "",
        preemptable=truth(annotations.get(PREEMPTABLE, labels.get(PREEMPTABLE)), True),
        revocable_zone=_revocable_zone(annotations),
    )


def _revocable_zone(annotations: dict[str, str]) -> str:
    if ZONE in annotations:
        return "*" if annotations[ZONE] == "*" else ""
    return "*" if truth(annotations.get(PREEMPTABLE), False) else ""


def truth(text: str | None, otherwise: bool) -> bool:
    """A boolean as Go parses it; invalid text is false."""
    return otherwise if text is None else text in ("1", "t", "T", "TRUE", "true", "True")


def status_of(pod: dict[str, Any]) -> str:
    phase = (pod.get("status") or {}).get("phase", "")
    terminating = bool(pod["metadata"].get("deletionTimestamp"))
    if phase == "Running":
        return "Releasing" if terminating else "Running"
    if phase == "Pending":
        if terminating:
            return "Releasing"
        return "Bound" if pod["spec"].get("nodeName") else "Pending"
    if phase in ("Succeeded", "Failed"):
        return phase
    return "Unknown"


def _priority(spec: dict[str, Any], annotations: dict[str, str]) -> int:
    priority = 1
    if spec.get("priority") is not None:
        priority = spec["priority"]
    text = annotations.get(PRIORITY_ANNOTATION)
    if text is not None and re.fullmatch(r"[+-]?[0-9]+", text) and -(2**31) <= int(text) < 2**31:
        priority = int(text)
    return priority


def timestamp(meta: dict[str, Any]) -> float:
    text = meta.get("creationTimestamp")
    return datetime.fromisoformat(text).timestamp() if text else -1e12


def compare_tasks(left: Task, right: Task) -> int:
    """The number in the name, else age, else uid. Volcano: CompareTask.

    This is not an order when only some names have a number: it can have a cycle.
    """
    a, b = running_number(left.name), running_number(right.name)
    if a is not None and b is not None and a != b:
        return -1 if a < b else 1
    if left.created != right.created:
        return -1 if left.created < right.created else 1
    return -1 if left.uid < right.uid else 1


def running_number(name: str) -> int | None:
    parts = name.split("-")
    if len(parts) < 3 or not re.fullmatch(r"[0-9]+", parts[-1]):
        return None
    number = int(parts[-1])
    return number if number < 2**63 else None
