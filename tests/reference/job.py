"""PodGroups with their tasks. Volcano: JobInfo."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from tests.reference.hyper_nodes import topology_of
from tests.reference.messages import Condition, FitErrors
from tests.reference.resource import Resource, exceeded_part, is_scalar_name, parse
from tests.reference.sub_job import SubJob, divide
from tests.reference.task import ALLOCATED_STATUS, PREEMPTABLE, QUEUE_GATE, Task, timestamp, truth


class Job:
    def __init__(self, group: dict[str, Any], default_queue: str) -> None:
        meta, spec = group["metadata"], group.get("spec") or {}
        self.group = group
        self.uid = f"{meta.get('namespace', 'default')}/{meta['name']}"
        self.created = timestamp(meta)
        self.min_available: int = spec.get("minMember", 0)
        self.queue: str = spec.get("queue") or default_queue
        self.priority = 0
        self.priority_class: str = spec.get("priorityClassName") or ""
        self.task_min_available: dict[str, int] = spec.get("minTaskMember") or {}
        self.min_resources: dict[str, Any] | None = spec.get("minResources")
        self.annotations: dict[str, str] = meta.get("annotations") or {}
        marks = {**(meta.get("labels") or {}), **(meta.get("annotations") or {})}
        self.topology = topology_of(spec.get("networkTopology"))
        self.allocated_hyper_node = ""
        self.sub_jobs: dict[str, SubJob] = {}
        self.policies: list[dict[str, Any]] = spec.get("subGroupPolicy") or []
        self.min_sub_jobs: dict[str, int] = {
            f"{self.uid}/{p['name']}": p.get("minSubGroups") or 0 for p in self.policies
        }
        self.preemptable_mark: str | None = marks.get(PREEMPTABLE)
        self.preemptable = truth(self.preemptable_mark, False)
        self.phase: str = (group.get("status") or {}).get("phase") or ""
        self.unschedulable = False
        """The gang plugin found it unschedulable in this session."""
        self.tasks: dict[str, Task] = {}
        self.fit_errors: dict[str, FitErrors] = {}
        """Tasks for which no node was found in this session, by uid."""
        self.conditions: list[Condition] = [
            (c.get("type", ""), c.get("status", ""), c.get("reason", ""), c.get("message", ""))
            for c in (group.get("status") or {}).get("conditions") or []
        ]
        self.rarities: set[str] = set()
        """As Session.rarities."""

    # --- sub-jobs

    def divide(self) -> None:
        spec = self.group.get("spec") or {}
        self.sub_jobs = divide(self.uid, list(self.tasks.values()), self.min_available, spec)

    def sub_job_of(self, task: Task) -> SubJob:
        return next(s for s in self.sub_jobs.values() if task.uid in s.tasks)

    def has_topology(self) -> bool:
        return self.topology is not None or any(s.topology is not None for s in self.sub_jobs.values())

    def has_hard_topology(self) -> bool:
        topologies = (self.topology, *(s.topology for s in self.sub_jobs.values()))
        return any(t is not None and t.hard for t in topologies)

    def _enough_sub_jobs(self, good: Callable[[SubJob], bool]) -> bool:
        have = Counter(s.gid for s in self.sub_jobs.values() if good(s))
        return all(have[gid] >= least for gid, least in self.min_sub_jobs.items())

    def check_sub_job_valid(self) -> bool:
        return self._enough_sub_jobs(lambda sub: True)

    def check_sub_job_ready(self) -> bool:
        return self._enough_sub_jobs(SubJob.is_ready)

    def check_sub_job_pipelined(self) -> bool:
        return self._enough_sub_jobs(SubJob.is_pipelined)

    # --- counting

    def with_status(self, *statuses: str) -> list[Task]:
        return [t for t in self.tasks.values() if t.status in statuses]

    def ready_task_num(self) -> int:
        return len(self.with_status(*ALLOCATED_STATUS, "Succeeded"))

    def pending_best_effort(self) -> int:
        return sum(t.best_effort for t in self.with_status("Pending"))

    def valid_task_num(self) -> int:
        return len(self.with_status(*ALLOCATED_STATUS, "Succeeded", "Pipelined", "Pending"))

    def allocated_task_num(self) -> int:
        return len(self.with_status(*ALLOCATED_STATUS))

    def is_ready(self) -> bool:
        return self.ready_task_num() + self.pending_best_effort() >= self.min_available

    def is_pipelined(self) -> bool:
        waiting = len(self.with_status("Pipelined"))
        return waiting + self.ready_task_num() + self.pending_best_effort() >= self.min_available

    def is_starving(self) -> bool:
        return len(self.with_status("Pipelined")) + self.ready_task_num() < self.min_available

    def is_pending(self) -> bool:
        return self.phase in ("", "Pending")

    # --- minimums of roles

    def task_min_available_total(self) -> int:
        return sum(self.task_min_available.values())

    def _roles_reach(self, tasks: Iterable[Task]) -> bool:
        if self.min_available < self.task_min_available_total():
            return True
        have = Counter(t.role for t in tasks)
        return all(have[role] >= least for role, least in self.task_min_available.items())

    def allocated_roles(self) -> list[Task]:
        empty = [t for t in self.with_status("Pending") if t.best_effort]
        return self.with_status(*ALLOCATED_STATUS, "Succeeded") + empty

    def check_task_valid(self) -> bool:
        return self._roles_reach(self.with_status(*ALLOCATED_STATUS, "Succeeded", "Pipelined", "Pending"))

    def check_task_ready(self) -> bool:
        return self._roles_reach(self.allocated_roles())

    def check_task_pipelined(self) -> bool:
        return self._roles_reach(self.allocated_roles() + self.with_status("Pipelined"))

    # --- after a task did not fit

    def fit_failed_roles(self, sub: SubJob) -> set[str]:
        return {t.role for t in sub.tasks.values() if t.uid in self.fit_errors}

    def task_has_fit_errors(self, sub: SubJob, task: Task) -> bool:
        return bool(task.role) and task.role in self.fit_failed_roles(sub)

    def need_continue_allocating(self, sub: SubJob) -> bool:
        if self.min_available == len(self.tasks):
            return False
        if sub.min_available >= len(sub.tasks):
            return False
        if self.policies:
            return True
        failed = self.fit_failed_roles(sub)
        if self.min_available < self.task_min_available_total():
            left = sum(t.role not in failed for t in self.with_status("Pending"))
            return self.ready_task_num() + left >= self.min_available
        have = Counter(t.role for t in self.allocated_roles())
        for role in failed:
            least = self.task_min_available.get(role, 0)
            if least != 0 and have[role] < least:
                return False
        return True

    # --- amounts

    def allocated(self) -> Resource:
        total = Resource()
        for t in self.with_status(*ALLOCATED_STATUS):
            total.add(t.resreq)
        return total

    def minimum(self) -> Resource:
        """Volcano: GetMinResources."""
        return parse(self.min_resources)

    def elastic(self) -> Resource:
        """Volcano: GetElasticResources."""
        return exceeded_part(self.allocated(), self.minimum())

    def deduct_gated(self, amount: Resource) -> Resource:
        """Volcano: DeductSchGatedResources. Tasks with only Volcano's own gate are not deducted."""
        gated = Resource()
        for t in self.tasks.values():
            if t.gated and t.gates != [QUEUE_GATE]:
                gated.add(t.resreq)
                if t.status != "Pending":
                    self.rarities.add("gated-and-terminating")
        if gated.is_empty():
            return amount
        result = amount.clone()
        result.cpu = max(result.cpu - gated.cpu, 0.0)
        result.memory = max(result.memory - gated.memory, 0.0)
        for name in result.scalars or {}:
            if name in (gated.scalars or {}):
                result.scalars[name] = max(result.scalars[name] - gated.scalars[name], 0.0)
        return result

    def unallocated_minimum(self) -> Resource:
        """The part of minResources that is not allocated yet. Volcano: GetInqueueResource."""
        least, have = self.minimum(), self.allocated()
        result = Resource()
        for name in self.min_resources or {}:
            if name == "cpu":
                result.cpu = max(least.cpu - have.cpu, 0.0)
            elif name == "memory":
                result.memory = max(least.memory - have.memory, 0.0)
            elif name == "pods" or (is_scalar_name(name) and not name.startswith("count/")):
                lacking = least.get(name) - have.get(name)
                if lacking > 0:
                    result.add_scalar(name, lacking)
            elif least.get(name) > 0:
                self.rarities.add("no-scalar")
        return result
