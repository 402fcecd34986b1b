"""SessionJob: a job's numbers in one session. Volcano: JobInfo's counters and readiness rules.

Facts (minimums, queue, creation) are the model's and shared; counts and sums are the session's own copies and
move with its statements. Everything here is arithmetic on counts, so that asking is cheap after every
placement.
"""

from __future__ import annotations

from volcano_py.api.scheduling import PodGroup, PodGroupCondition
from volcano_py.scheduler.framework.fit_errors import FitErrors
from volcano_py.scheduler.model import status as st
from volcano_py.scheduler.model.job import Job
from volcano_py.scheduler.model.resource import Resource, exceeded_part
from volcano_py.scheduler.model.task import Task


class SessionJob:
    """A job as the session sees it. `conditions` and `phase` are what will be written at its close."""

    __slots__ = (
        "_roles",
        "allocated",
        "best_effort_counts",
        "conditions",
        "counts",
        "created",
        "fit_errors",
        "fit_failed_roles",
        "job_fit_errors",
        "last_transaction",
        "min_available",
        "min_resources",
        "model",
        "name",
        "namespace",
        "phase",
        "pod_group",
        "priority",
        "queue",
        "task_min_available",
        "task_min_total",
        "tasks",
        "uid",
    )

    def __init__(self, job: Job, pod_group: PodGroup, priority: int) -> None:
        self.model = job
        self.uid = job.uid
        self.name = job.name
        self.namespace = job.namespace
        self.queue = job.queue
        self.created = job.created
        self.priority = priority
        self.pod_group = pod_group
        self.phase = pod_group.status.phase
        self.conditions: list[PodGroupCondition] | None = None
        """None: as they were."""
        self.min_available = job.min_available
        self.min_resources = job.min_resources
        self.task_min_available = job.task_min_available
        self.task_min_total = job.task_min_total
        self.tasks = job.tasks
        self.counts = job.counts.copy()
        self.best_effort_counts = job.best_effort_counts.copy()
        self.allocated = job.allocated.clone()
        self.fit_errors: dict[str, FitErrors] = {}
        """By task key."""
        self.fit_failed_roles: set[str] = set()
        self.job_fit_errors = ""
        self.last_transaction: dict[str, tuple[int, str]] | None = None
        """What a discarded statement had in mind for a task: key → (status, node name)."""
        self._roles: dict[str, list[int]] | None = None

    # ---- movement ---------------------------------------------------------------------------------------

    def moved(self, task: Task, old: int, new: int) -> None:
        """A task went from one status to another."""
        self.counts[old] -= 1
        self.counts[new] += 1
        if task.best_effort:
            self.best_effort_counts[old] -= 1
            self.best_effort_counts[new] += 1
        was, now = st.IS_ALLOCATED[old], st.IS_ALLOCATED[new]
        if was != now:
            if now:
                self.allocated.add(task.request)
            else:
                self.allocated.sub_unchecked(task.request)
        if self._roles is not None:
            role = self._roles[task.role]
            role[old] -= 1
            role[new] += 1

    def roles(self, statuses: bytearray) -> dict[str, list[int]]:
        """Tasks by role and status; built when first asked for, then kept."""
        if self._roles is None:
            self._roles = {}
            for task in self.tasks.values():
                self._roles.setdefault(task.role, [0] * 10)[statuses[task.slot]] += 1
        return self._roles

    # ---- counters ---------------------------------------------------------------------------------------

    @property
    def ready_num(self) -> int:
        c = self.counts
        return c[st.BOUND] + c[st.BINDING] + c[st.RUNNING] + c[st.ALLOCATED] + c[st.SUCCEEDED]

    @property
    def pending_best_effort(self) -> int:
        return self.best_effort_counts[st.PENDING]

    @property
    def valid_num(self) -> int:
        return self.ready_num + self.counts[st.PIPELINED] + self.counts[st.PENDING]

    @property
    def scheduled_num(self) -> int:
        c = self.counts
        return c[st.RUNNING] + c[st.BOUND] + c[st.FAILED] + c[st.SUCCEEDED]

    @property
    def allocated_num(self) -> int:
        c = self.counts
        return c[st.BOUND] + c[st.BINDING] + c[st.RUNNING] + c[st.ALLOCATED]

    def releasing_scheduled_num(self, statuses: bytearray) -> int:
        """Tasks that leave a node; those that were deleted before they had one do not count."""
        if not self.counts[st.RELEASING]:
            return 0
        return sum(1 for t in self.tasks.values() if statuses[t.slot] == st.RELEASING and t.node)

    def is_pending(self) -> bool:
        return self.phase in ("", "Pending")

    def is_ready(self) -> bool:
        return self.ready_num + self.pending_best_effort >= self.min_available

    def is_pipelined(self) -> bool:
        return self.counts[st.PIPELINED] + self.ready_num + self.pending_best_effort >= self.min_available

    def is_starving(self) -> bool:
        return self.counts[st.PIPELINED] + self.ready_num < self.min_available

    def elastic_resources(self) -> Resource:
        """What it holds beyond its minimum."""
        return exceeded_part(self.allocated, self.min_resources or Resource())

    # ---- minimums by role -------------------------------------------------------------------------------

    def _role_minimums_matter(self) -> bool:
        return bool(self.task_min_available) and self.min_available >= self.task_min_total

    def check_task_valid(self, statuses: bytearray) -> bool:
        """Every role has enough tasks that exist or may come to run."""
        return self._roles_have(statuses, _VALID, 0)

    def check_task_ready(self, statuses: bytearray) -> bool:
        """Every role has its minimum placed; best-effort tasks that wait count as placed."""
        return self._roles_have(statuses, _READY, 1)

    def check_task_pipelined(self, statuses: bytearray) -> bool:
        return self._roles_have(statuses, _PIPELINED, 1)

    def _roles_have(self, statuses: bytearray, members: tuple[int, ...], best_effort: int) -> bool:
        if not self._role_minimums_matter():
            return True
        roles = self.roles(statuses)
        waiting: dict[str, int] = {}
        if best_effort and self.pending_best_effort:
            for t in self.tasks.values():
                if t.best_effort and statuses[t.slot] == st.PENDING:
                    waiting[t.role] = waiting.get(t.role, 0) + 1
        for role, minimum in self.task_min_available.items():
            counts = roles.get(role)
            have = sum(counts[s] for s in members) if counts else 0
            if have + waiting.get(role, 0) < minimum:
                return False
        return True

    # ---- after a refusal --------------------------------------------------------------------------------

    def record_fit_errors(self, task: Task, errors: FitErrors) -> None:
        self.fit_errors[task.key] = errors
        self.fit_failed_roles.add(task.role)

    def task_has_fit_errors(self, task: Task) -> bool:
        """A task of the same role was refused already; this one would be as well."""
        return task.role != "" and task.role in self.fit_failed_roles

    def need_continue_allocating(self, statuses: bytearray) -> bool:
        """After a refusal: whether the rest of the gang can still reach its minimum without that role."""
        if self.min_available == len(self.tasks) or self.min_available >= len(self.tasks):
            return False
        failed = self.fit_failed_roles
        if self.min_available < self.task_min_total:
            left = sum(1 for t in self.tasks.values() if statuses[t.slot] == st.PENDING and t.role not in failed)
            return self.ready_num + left >= self.min_available
        roles = self.roles(statuses)
        for role in failed:
            minimum = self.task_min_available.get(role, 0)
            if minimum:
                counts = roles.get(role)
                have = sum(counts[s] for s in _READY) if counts else 0
                have += sum(
                    1
                    for t in self.tasks.values()
                    if t.role == role and t.best_effort and statuses[t.slot] == st.PENDING
                )
                if have < minimum:
                    return False
        return True


_READY = (st.BOUND, st.BINDING, st.RUNNING, st.ALLOCATED, st.SUCCEEDED)
_PIPELINED = (*_READY, st.PIPELINED)
_VALID = (*_PIPELINED, st.PENDING)
