"""Sub-jobs: tasks of a job that are placed together. Volcano: SubJobInfo."""

from __future__ import annotations

from typing import Any

from tests.reference.hyper_nodes import Topology, topology_of
from tests.reference.kube.selectors import matches
from tests.reference.task import ALLOCATED_STATUS, Task


class SubJob:
    def __init__(self, uid: str, gid: str, min_available: int, topology: Topology | None, index: int = 0) -> None:
        self.uid = uid
        self.gid = gid
        self.min_available = min_available
        self.topology = topology
        self.index = index
        """The number in its tasks' label. Volcano: MatchIndex."""
        self.priority = 0
        self.allocated_hyper_node = ""
        self.nominated_hyper_node = ""
        self.tasks: dict[str, Task] = {}

    def add(self, task: Task) -> None:
        self.tasks[task.uid] = task
        self.priority = max(self.priority, task.priority)

    def with_status(self, *statuses: str) -> list[Task]:
        return [t for t in self.tasks.values() if t.status in statuses]

    def _ready(self) -> int:
        empty = sum(t.best_effort for t in self.with_status("Pending"))
        return len(self.with_status(*ALLOCATED_STATUS, "Succeeded")) + empty

    def is_ready(self) -> bool:
        return self._ready() >= self.min_available

    def is_pipelined(self) -> bool:
        return self._ready() + len(self.with_status("Pipelined")) >= self.min_available


def place_of(task: Task, job: str, policies: list[dict[str, Any]]) -> tuple[str, str, list[str], dict[str, Any] | None]:
    """The sub-job of a task: uid, gid, the values of its labels, and the policy, None for the default."""
    labels = task.pod["metadata"].get("labels") or {}
    for policy in policies:
        if policy.get("labelSelector") is not None and not matches(policy["labelSelector"], labels):
            continue
        values = [labels.get(key, "") for key in policy.get("matchLabelKeys") or []]
        if values and all(values):
            gid = f"{job}/{policy['name']}"
            return f"{gid}-{'-'.join(values)}", gid, values, policy
    return job, job, [], None


def divide(job: str, tasks: list[Task], min_available: int, spec: dict[str, Any]) -> dict[str, SubJob]:
    """The sub-jobs of a job, by uid."""
    policies = spec.get("subGroupPolicy") or []
    found: dict[str, SubJob] = {}
    for task in tasks:
        uid, gid, values, policy = place_of(task, job, policies)
        if uid not in found:
            if policy is None:
                least = 1 if policies else min_available
                found[uid] = SubJob(uid, gid, least, topology_of(spec.get("networkTopology")))
            else:
                index = int(values[0]) if values[0].lstrip("-").isdigit() else 0
                index = index if -(2**63) <= index < 2**63 else 0
                least = 1 if policy.get("subGroupSize") is None else policy["subGroupSize"]
                found[uid] = SubJob(uid, gid, least, topology_of(policy.get("networkTopology")), index)
        found[uid].add(task)
    return found
