"""Task: a pod in the scheduler. Volcano: TaskInfo.

A task is replaced whenever its pod changes, and a session does not write it; the decisions of a session (status, node,
nomination) are in the session's columns at the task's `slot`.
"""

from __future__ import annotations

import re

from volcano_py.api import names
from volcano_py.api.core import Pod
from volcano_py.api.meta import parse_time
from volcano_py.scheduler.model.claims.demand import NONE, PodClaimDemand
from volcano_py.scheduler.model.jobs import status
from volcano_py.scheduler.model.jobs.spec_class import SpecClass
from volcano_py.scheduler.model.resource import Resource

_NUMBER = re.compile(r"[+-]?[0-9]{1,30}", re.ASCII)
"""The decimal numbers that Go accepts: Python's int() also accepts underscores and spaces."""
_TRUE = frozenset(("1", "t", "T", "TRUE", "true", "True"))
_FALSE = frozenset(("0", "f", "F", "FALSE", "false", "False"))


class Task:
    """One pod. `job` is "" for pods that belong to no PodGroup: they only take capacity on their node."""

    __slots__ = (
        "assigned",
        "best_effort",
        "claims",
        "created",
        "index",
        "job",
        "key",
        "name",
        "namespace",
        "node",
        "plain",
        "pod",
        "preemptable",
        "priority",
        "request",
        "role",
        "sched_gated",
        "slot",
        "spec_class",
        "status",
        "uid",
    )

    def __init__(self, pod: Pod, spec_class: SpecClass, job: str, claims: PodClaimDemand = NONE) -> None:
        meta = pod.metadata
        annotations = meta.annotations or {}
        labels = meta.labels or {}
        self.pod = pod
        self.assigned: dict[str, str] | None = None
        """Annotations of a binding that was sent and that the pod does not contain yet."""
        self.set_class(spec_class, claims)
        self.namespace = meta.namespace
        self.name = meta.name
        self.key = f"{meta.namespace}/{meta.name}"
        self.uid = meta.uid or self.key
        self.job = job
        self.role = annotations.get(names.TASK_SPEC) or labels.get(names.TASK_SPEC) or ""
        self.priority = _priority(pod, annotations)
        self.preemptable = flag(annotations, labels, names.PREEMPTABLE, absent=True)
        self.created = parse_time(meta.creation_timestamp) if meta.creation_timestamp else 0.0
        self.index = _index(meta.name)
        self.sched_gated = bool(pod.spec.scheduling_gates)
        self.node = pod.spec.node_name
        self.status = status.of_pod(pod.status.phase, meta.deletion_timestamp is not None, self.node)
        self.slot = -1

    def set_class(self, spec_class: SpecClass, claims: PodClaimDemand) -> None:
        """Set the class, which depends on the pod and on the requirements of its claims."""
        self.spec_class = spec_class
        self.claims = claims
        self.plain = (
            claims is NONE
            and not self.pod.spec.scheduling_gates
            and not self.pod.status.nominated_node_name
            and not self.needs_queue_admission
        )
        """Whether it has no claims, gates or nominated node: its class decides about its node."""
        self.request: Resource = spec_class.request
        self.best_effort = spec_class.best_effort

    @property
    def only_queue_gate(self) -> bool:
        """Whether Volcano's own queue-admission gate is the pod's only gate."""
        gates = self.pod.spec.scheduling_gates or ()
        return len(gates) == 1 and gates[0].name == names.QUEUE_ALLOCATION_GATE

    @property
    def needs_queue_admission(self) -> bool:
        """Whether the pod is gated until its queue has capacity."""
        return self.annotations.get(names.QUEUE_ALLOCATION_GATE) == "true"

    @property
    def takes_capacity(self) -> bool:
        """Whether it counts on its node: it has one and is not finished."""
        return bool(self.node) and self.status not in (status.SUCCEEDED, status.FAILED)

    @property
    def labels(self) -> dict[str, str]:
        return self.pod.metadata.labels or {}

    @property
    def annotations(self) -> dict[str, str]:
        annotations = self.pod.metadata.annotations or {}
        return annotations if self.assigned is None else annotations | self.assigned

    def __repr__(self) -> str:
        return f"Task({self.key} {status.STATUS_NAMES[self.status]} {self.node})"


def flag(annotations: dict[str, str], labels: dict[str, str], key: str, absent: bool) -> bool:
    """A boolean annotation, else label; text that is not a boolean is false."""
    text = annotations.get(key)
    if text is None:
        text = labels.get(key)
    return absent if text is None else text in _TRUE


def _priority(pod: Pod, annotations: dict[str, str]) -> int:
    text = annotations.get(names.TASK_PRIORITY)
    if text is not None and _NUMBER.fullmatch(text) and -(2**31) <= int(text) < 2**31:
        return int(text)
    return 1 if pod.spec.priority is None else pod.spec.priority


def _index(name: str) -> int | None:
    """The number at the end of `job-task-7`; None without one."""
    parts = name.split("-")
    if len(parts) < 3:
        return None
    last = parts[-1]
    if not (last.isascii() and last.isdigit()):
        return None
    number = int(last)
    return number if number < 2**63 else None
