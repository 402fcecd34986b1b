"""SessionJob: a job's numbers in one session. Volcano: JobInfo's counters and readiness rules.

Minimums, queue and creation time belong to the model and are shared; counts and sums are the session's own copies and
change with its statements. Everything here is arithmetic on counts, so that it can be evaluated after every
placement.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from volcano_py.api.scheduling import PodGroup, PodGroupCondition
from volcano_py.scheduler.framework.cause import Cause
from volcano_py.scheduler.framework.jobs.gang_counts import GangCounts
from volcano_py.scheduler.framework.jobs.sub_job import (
    SubJob,
    TierConstraint,
    constraint,
    group_sub_job,
    match_index,
    sub_group_of,
    sub_job_uid,
)
from volcano_py.scheduler.framework.jobs.tree_sub_jobs import divided_tree
from volcano_py.scheduler.framework.search.fit_errors import FitErrors
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.job import Job
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.resource import Resource, exceeded_part

# Most jobs of a session have none of these, and share the empty ones.
_NO_ERRORS: Mapping[str, FitErrors] = MappingProxyType({})
_NO_SUB_JOBS: Mapping[str, SubJob] = MappingProxyType({})
_NO_MINIMUMS: Mapping[str, int] = MappingProxyType({})

LastTry = tuple[int, str, bool]
"""What a discarded statement had decided for a task: status, node name, and whether pods would be evicted for it."""


class SessionJob(GangCounts):
    """A job in a session. `conditions` and `phase` are written at the session's close."""

    __slots__ = (
        "_roles",
        "_sub_job_of",
        "allocated",
        "allocated_hyper_node",
        "cause",
        "claims_nothing",
        "conditions",
        "constraint",
        "created",
        "fit_errors",
        "job_fit_errors",
        "last_transaction",
        "min_resources",
        "min_sub_jobs",
        "model",
        "name",
        "namespace",
        "phase",
        "pod_group",
        "priority",
        "queue",
        "rank",
        "role_errors",
        "sub_jobs",
        "task_min_available",
        "task_min_total",
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
        self.claims_nothing = False
        """Whether it was admitted, and its pods do not exist for so long that its claim has ended."""
        self.conditions: list[PodGroupCondition] | None = None
        """The new conditions; None: unchanged."""
        self.min_available = job.min_available
        self.min_resources = job.min_resources
        self.task_min_available = job.task_min_available
        self.task_min_total = job.task_min_total
        self.tasks = job.tasks
        self.counts = job.counts.copy()
        kept = job.best_effort_counts
        self.best_effort_counts = kept if kept is st.NO_TASKS else list(kept)
        self.allocated = job.allocated.clone()
        self.rank: tuple[Any, ...] | None = None
        """The plugins' part of the sort key, if it is kept; until a task moves."""
        self.fit_errors = _NO_ERRORS
        """By task key."""
        self.fit_failed_roles = frozenset()
        self.role_errors = _NO_ERRORS
        """By role: the fit errors of the first of its tasks that all nodes rejected."""
        self.job_fit_errors = ""
        self.cause: Cause | None = None
        """The first decision against the job in this session that does not concern nodes."""
        self.last_transaction: dict[str, LastTry] | None = None
        """By task key."""
        self._roles: dict[str, list[int]] | None = None
        self.constraint: TierConstraint | None = None
        """How close together the pods of the job must be; None: no constraint."""
        self.allocated_hyper_node = ""
        """The lowest HyperNode that contains all of its placed tasks."""
        self.sub_jobs = _NO_SUB_JOBS
        """By UID; empty unless the job has a topology or sub-group policies."""
        self.min_sub_jobs = _NO_MINIMUMS
        """How many sub-jobs of each policy must be ready."""
        self._sub_job_of = _NO_SUB_JOBS

    # ---- sub-jobs ---------------------------------------------------------------------------------------

    def divide(
        self, statuses: bytearray, tier_of_name: dict[str, int], root_tier: int, unknown_waits: bool = False
    ) -> None:
        """Form the sub-jobs. `root_tier`: the tier of the whole cluster, which is the limit of a soft topology."""
        spec = self.pod_group.spec
        policies = spec.sub_group_policy or []
        key = self.model.topology_key
        self.constraint = (
            TierConstraint(None, key)
            if key
            else constraint(spec.network_topology, tier_of_name, root_tier, unknown_waits)
        )
        mine = self.constraint
        soft_tier = mine.tier if mine is not None and mine.tier is not None else root_tier
        if self.model.tree is not None:
            self.min_sub_jobs, self.sub_jobs, self._sub_job_of = divided_tree(
                self.uid, self.model.tree, self.tasks, statuses
            )
            return
        self.min_sub_jobs = {f"{self.uid}/{p.name}": p.min_sub_groups or 0 for p in policies}
        sub_jobs, sub_job_of = dict(self.sub_jobs), dict(self._sub_job_of)
        for task in self.tasks.values():
            found = sub_group_of(task, policies)
            if found is None:
                sub = sub_jobs.get(self.uid)
                if sub is None:
                    sub = SubJob(self.uid, self.uid, 1 if policies else self.min_available, mine)
            else:
                policy, values = found
                uid = sub_job_uid(self.uid, policy.name, values)
                sub = sub_jobs.get(uid)
                if sub is None:
                    closeness = constraint(policy.network_topology, tier_of_name, soft_tier, unknown_waits)
                    size = 1 if policy.sub_group_size is None else policy.sub_group_size
                    sub = SubJob(uid, f"{self.uid}/{policy.name}", size, closeness, match_index(values))
            sub_jobs[sub.uid] = sub_job_of[task.key] = sub
            sub.add(task, statuses[task.slot])
            if task.key in self.fit_errors:  # it was rejected before the job was divided
                sub.fit_failed_roles |= {task.role}
        self.sub_jobs, self._sub_job_of = sub_jobs, sub_job_of

    def sub_job_of(self, task: Task) -> SubJob | None:
        """The sub-job of a task; None if the job has none."""
        return self._sub_job_of.get(task.key)

    @property
    def has_policies(self) -> bool:
        return bool(self.min_sub_jobs)

    @property
    def has_topology(self) -> bool:
        """Whether the job or one of its sub-jobs has a constraint on how close together its pods must be."""
        if self.constraint is not None or not self.sub_jobs:
            return self.constraint is not None
        return any(s.constraint is not None for s in self.sub_jobs.values())

    @property
    def has_hard_topology(self) -> bool:
        return any(c is not None and c.hard for c in (self.constraint, *(s.constraint for s in self.sub_jobs.values())))

    def check_sub_jobs(self, holds: Callable[[SubJob], bool]) -> bool:
        """Whether enough sub-jobs of every policy have a property."""
        if not self.min_sub_jobs:
            return True
        if self.model.tree is not None:
            return self.model.tree.holds(
                lambda name: self._has_minimum(self.sub_jobs[group_sub_job(self.uid, name)], holds)
            )
        have = dict.fromkeys(self.min_sub_jobs, 0)
        for sub in self.sub_jobs.values():
            if sub.gid in have and holds(sub):
                have[sub.gid] += 1
        return all(have[gid] >= minimum for gid, minimum in self.min_sub_jobs.items())

    @staticmethod
    def _has_minimum(sub: SubJob, holds: Callable[[SubJob], bool]) -> bool:
        """Whether a PodGroup of a tree has enough pods, and the property."""
        return sub.valid_num >= sub.min_available and holds(sub)

    # ---- movement ---------------------------------------------------------------------------------------

    def moved(self, task: Task, old: int, new: int, count: int = 1) -> None:
        """Count the change of a task from one status to another or, in a job without sub-jobs, of `count` tasks of its
        class and role."""
        super().moved(task, old, new, count)
        self.rank = None
        was, now = st.IS_ALLOCATED[old], st.IS_ALLOCATED[new]
        if was != now:
            amount = task.request if count == 1 else task.request.times(count)
            if now:
                self.allocated.add(amount)
            else:
                self.allocated.sub_unchecked(amount)
        if self._roles is not None:
            role = self._roles[task.role]
            role[old] -= count
            role[new] += count
        if self._sub_job_of:
            self._sub_job_of[task.key].moved(task, old, new)

    def missing(self, role: str, statuses: bytearray) -> int:
        """How many tasks of a role, at least, lack a node until the minimums of the job and of the role are reached."""
        lacking = self.min_available - self.ready_num - self.pending_best_effort
        minimum = self.task_min_available.get(role, 0)
        if minimum and self._role_minimums_matter() and not self.pending_best_effort:
            counts = self.roles(statuses)[role]
            lacking = max(lacking, minimum - sum(counts[s] for s in st.READY))
        return lacking

    def roles(self, statuses: bytearray) -> dict[str, list[int]]:
        """Tasks by role and status; built when first requested, then kept."""
        if self._roles is None:
            self._roles = {}
            for task in self.tasks.values():
                self._roles.setdefault(task.role, [0] * 10)[statuses[task.slot]] += 1
        return self._roles

    # ---- counters ---------------------------------------------------------------------------------------

    @property
    def scheduled_num(self) -> int:
        c = self.counts
        return c[st.RUNNING] + c[st.BOUND] + c[st.FAILED] + c[st.SUCCEEDED]

    def releasing_scheduled_num(self, statuses: bytearray) -> int:
        """Number of releasing tasks that have a node."""
        if not self.counts[st.RELEASING]:
            return 0
        return sum(1 for t in self.tasks.values() if statuses[t.slot] == st.RELEASING and t.node)

    @property
    def claims_minimum(self) -> bool:
        """Whether its minimum counts as used, as it is admitted and its pods are expected."""
        return self.phase == "Inqueue" and not self.claims_nothing

    def is_pending(self) -> bool:
        return self.phase in ("", "Pending")

    def elastic_resources(self) -> Resource:
        """What the job holds beyond its minimum."""
        return exceeded_part(self.allocated, self.min_resources or Resource())

    # ---- minimums by role -------------------------------------------------------------------------------

    def _role_minimums_matter(self) -> bool:
        return bool(self.task_min_available) and self.min_available >= self.task_min_total

    def check_task_valid(self, statuses: bytearray) -> bool:
        """Whether every role has enough tasks that run or can still run."""
        return self._roles_have(statuses, _VALID, 0)

    def check_task_ready(self, statuses: bytearray) -> bool:
        """Whether the minimum of every role is placed; pending best-effort tasks count as placed."""
        return self._roles_have(statuses, st.READY, 1)

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

    def block(self, cause: Cause) -> None:
        """Record why the job cannot be scheduled; the first cause of a session is kept."""
        if self.cause is None:
            self.cause = cause

    # ---- fit errors -------------------------------------------------------------------------------------

    def set_fit_errors(self, task: Task, errors: FitErrors) -> None:
        """Set the errors of one task, which count for no other."""
        self.fit_errors = _with(self.fit_errors, task.key, errors)

    def record_fit_errors(self, task: Task, errors: FitErrors) -> None:
        """Set the errors of a task that all nodes rejected, as they would reject others of its role."""
        self.set_fit_errors(task, errors)
        if task.role not in self.role_errors:
            self.role_errors = _with(self.role_errors, task.role, errors)
        if task.role not in self.fit_failed_roles:
            self.fit_failed_roles |= {task.role}
        if self._sub_job_of:
            self._sub_job_of[task.key].fit_failed_roles |= {task.role}

    def forget_fit_errors(self, sub: SubJob | None = None) -> None:
        """Delete the fit errors of a completed attempt: those of one sub-job, or all."""
        self.role_errors = _NO_ERRORS
        if sub is not None:
            self.fit_errors = {key: errors for key, errors in self.fit_errors.items() if key not in sub.tasks}
            sub.fit_failed_roles = frozenset()
            return
        self.job_fit_errors = ""
        self.fit_errors, self.fit_failed_roles = _NO_ERRORS, frozenset()
        for each in self.sub_jobs.values():
            each.fit_failed_roles = frozenset()

    def need_continue_allocating(self, statuses: bytearray, sub: SubJob | None = None) -> bool:
        """After a rejection: whether the other tasks of the gang can still reach its minimum without that role."""
        gang = sub or self
        if self.min_available == len(self.tasks) or gang.min_available >= len(gang.tasks):
            return False
        if self.has_policies:
            return True
        failed = gang.fit_failed_roles
        if self.min_available < self.task_min_total:
            left = sum(1 for t in self.tasks.values() if statuses[t.slot] == st.PENDING and t.role not in failed)
            return self.ready_num + left >= self.min_available
        roles = self.roles(statuses)
        for role in failed:
            minimum = self.task_min_available.get(role, 0)
            if minimum:
                counts = roles.get(role)
                have = sum(counts[s] for s in st.READY) if counts else 0
                have += sum(
                    1
                    for t in self.tasks.values()
                    if t.role == role and t.best_effort and statuses[t.slot] == st.PENDING
                )
                if have < minimum:
                    return False
        return True


def _with(known: Mapping[str, FitErrors], key: str, errors: FitErrors) -> dict[str, FitErrors]:
    """The errors with one more: in place, unless they are the shared empty ones."""
    found = known if isinstance(known, dict) else {}
    found[key] = errors
    return found


_PIPELINED = (*st.READY, st.PIPELINED)
_VALID = (*_PIPELINED, st.PENDING)
