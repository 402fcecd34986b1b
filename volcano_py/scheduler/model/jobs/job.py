"""Job: a PodGroup with its tasks. Volcano: JobInfo.

Only events change the model's job; the numbers of a session are in `framework.jobs.session_job`.
"""

from __future__ import annotations

from collections.abc import Sequence

from volcano_py.api import gang, names
from volcano_py.api.duration import parse_duration
from volcano_py.api.meta import parse_time
from volcano_py.api.scheduling import PodGroup
from volcano_py.scheduler.model.jobs.group_tree import GroupTree
from volcano_py.scheduler.model.jobs.status import IS_ALLOCATED, NO_TASKS, counted
from volcano_py.scheduler.model.jobs.task import Task, flag
from volcano_py.scheduler.model.resource import Resource


class Job:
    """A gang. It exists as soon as a pod refers to it or its PodGroup appears, whichever is first."""

    __slots__ = (
        "_newest",
        "allocated",
        "allocated_hyper_nodes",
        "best_effort_counts",
        "counts",
        "created",
        "evicted_whole",
        "gated",
        "gated_by_queue",
        "min_available",
        "min_resources",
        "name",
        "namespace",
        "native",
        "pod_group",
        "preemptable",
        "priority",
        "queue",
        "shadow",
        "shadow_of",
        "task_min_available",
        "task_min_total",
        "tasks",
        "topology_key",
        "total_request",
        "tree",
        "uid",
        "waiting_time",
    )

    def __init__(self, uid: str) -> None:
        self.uid = uid
        self.namespace, _, self.name = uid.partition("/")
        self.pod_group: PodGroup | None = None
        self.shadow = False
        """Whether the PodGroup is the substitute for that of plain pods, see `model.jobs.shadow_groups`."""
        self.shadow_of = ""
        """The key of the task that the substitute was derived from."""
        self.native: gang.AnyGroup | None = None
        """The PodGroup or CompositePodGroup of scheduling.k8s.io from which `pod_group` was derived."""
        self.tree: GroupTree | None = None
        """The groups below a CompositePodGroup."""
        self.priority: int | None = None
        """The priority of the PodGroup itself; None: its priorityClassName decides."""
        self.evicted_whole = False
        """Whether its tasks are evicted all together or not at all."""
        self.topology_key = ""
        """A label key: all tasks must be on nodes with the same value of this label; empty: no constraint."""
        self.queue = ""
        self.created = 0.0
        self.min_available = 0
        self.min_resources: Resource | None = None
        self.task_min_available: dict[str, int] = {}
        self.task_min_total = 0
        self.waiting_time: float | None = None
        self.preemptable = False
        self.tasks: dict[str, Task] = {}
        self._newest: float | None = None
        self.counts = [0] * 10
        """Number of tasks by status."""
        self.best_effort_counts: Sequence[int] = NO_TASKS
        self.gated = 0
        """Number of tasks with scheduling gates."""
        self.gated_by_queue = 0
        """Number of tasks with queue admission by a gate, whether or not they still have the gate."""
        self.allocated = Resource()
        self.total_request = Resource()
        self.allocated_hyper_nodes: dict[str, str] = {}
        """The HyperNodes of its sub-jobs, by UID, and of the job under "": Volcano keeps them between sessions."""

    def set_pod_group(self, pod_group: PodGroup, default_queue: str) -> None:
        """Set the fields from a PodGroup. Raises ValueError if one of them is invalid."""
        spec = pod_group.spec
        try:
            minimum = None if spec.min_resources is None else Resource.parse(spec.min_resources)
        except ValueError as e:
            raise ValueError(f"spec.minResources.{e}") from None
        for name, amount in (minimum.as_dict() if minimum else {}).items():
            if amount < 0:
                raise ValueError(f"spec.minResources.{name}: a negative amount; use 0 or more")
        if spec.min_member < 0:
            raise ValueError(f"spec.minMember: {spec.min_member} is negative; use 0 or more")
        annotations = pod_group.metadata.annotations or {}
        created = pod_group.metadata.creation_timestamp
        self.created = parse_time(created) if created else 0.0
        self.pod_group = pod_group
        self.shadow = False
        self.min_resources = minimum
        self.queue = spec.queue or default_queue
        self.min_available = spec.min_member
        self.task_min_available = dict(spec.min_task_member or {})
        self.task_min_total = sum(self.task_min_available.values())
        self.waiting_time = _waiting_time(annotations)
        self.preemptable = flag(annotations, pod_group.metadata.labels or {}, names.PREEMPTABLE, absent=False)

    def unset_pod_group(self) -> None:
        self.pod_group = self.native = self.priority = self.tree = None
        self.evicted_whole, self.topology_key = False, ""
        self.min_resources = None

    @property
    def newest(self) -> float:
        """The creation time of the newest task, in seconds since the epoch; 0: it has no task."""
        if self._newest is None:
            self._newest = max((task.created for task in self.tasks.values()), default=0.0)
        return self._newest

    def add(self, task: Task) -> None:
        self._newest = None
        self.tasks[task.key] = task
        self.counts[task.status] += 1
        if task.best_effort:
            self.best_effort_counts = counted(self.best_effort_counts, task.status, +1)
        self.gated += task.sched_gated
        self.gated_by_queue += task.needs_queue_admission
        self.total_request.add(task.request)
        if IS_ALLOCATED[task.status]:
            self.allocated.add(task.request)

    def remove(self, task: Task) -> None:
        self._newest = None
        del self.tasks[task.key]
        self.gated -= task.sched_gated
        self.gated_by_queue -= task.needs_queue_admission
        self.counts[task.status] -= 1
        if task.best_effort:
            self.best_effort_counts = counted(self.best_effort_counts, task.status, -1)
        if not self.tasks:
            self.total_request, self.allocated = Resource(), Resource()
            return
        if not self.total_request.exact:
            self._add_up()
            return
        self.total_request.sub_unchecked(task.request)
        if IS_ALLOCATED[task.status]:
            self.allocated.sub_unchecked(task.request)

    def replace(self, old: Task, new: Task) -> None:
        """Replace a task by one of the same class."""
        if len(self.tasks) == 1:  # the sums start again without amounts of 0
            self.remove(old)
            self.add(new)
            return
        self._newest = None
        self.tasks[new.key] = new
        self.gated += new.sched_gated - old.sched_gated
        self.gated_by_queue += new.needs_queue_admission - old.needs_queue_admission
        if new.status != old.status:
            self.moved(new, old.status, new.status)

    def count_again(self) -> None:
        """Compute all counts and sums again."""
        tasks, self.tasks = self.tasks, {}
        self.counts, self.best_effort_counts = [0] * len(self.counts), NO_TASKS
        self.gated = self.gated_by_queue = 0
        self.total_request, self.allocated = Resource(), Resource()
        for task in tasks.values():
            self.add(task)

    def _add_up(self, without: Task | None = None) -> None:
        """Compute the sums again, after an amount too large for exact subtraction. `without`: a task that no longer
        holds anything."""
        self.total_request, self.allocated = Resource(), Resource()
        for task in self.tasks.values():
            self.total_request.add(task.request)
            if IS_ALLOCATED[task.status] and task is not without:
                self.allocated.add(task.request)

    def moved(self, task: Task, old: int, new: int, count: int = 1) -> None:
        """Count the change of a task from one status to another, or of `count` tasks of its class that got nodes."""
        self.counts[old] -= count
        self.counts[new] += count
        if task.best_effort:
            self.best_effort_counts = counted(self.best_effort_counts, old, -count)
            self.best_effort_counts = counted(self.best_effort_counts, new, count)
        if IS_ALLOCATED[old] and not IS_ALLOCATED[new]:
            if self.allocated.exact:
                self.allocated.sub_unchecked(task.request)
            else:
                self._add_up(without=task)
        elif IS_ALLOCATED[new] and not IS_ALLOCATED[old]:
            self.allocated.add(task.request if count == 1 else task.request.times(count))

    @property
    def needs_sub_jobs(self) -> bool:
        """Whether the job can consist of several gangs: it has a topology or sub-group policies."""
        if self.pod_group is None:
            return False
        spec = self.pod_group.spec
        return (
            self.tree is not None
            or bool(self.topology_key)
            or spec.network_topology is not None
            or bool(spec.sub_group_policy)
        )

    @property
    def evicts_nothing(self) -> bool:
        """Whether no pod may be evicted for the job: the preemptionPolicy of its group is Never."""
        return self.native is not None and self.native.spec.preemption_policy == "Never"

    @property
    def terminated(self) -> bool:
        """Whether the job has neither PodGroup nor tasks and can be removed."""
        return self.pod_group is None and not self.tasks


def _waiting_time(annotations: dict[str, str]) -> float | None:
    """The first valid value of the two annotations."""
    for key in (names.SLA_WAITING_TIME, names.SLA_WAITING_TIME_SHORT):
        text = annotations.get(key)
        if not text:
            continue
        try:
            seconds = parse_duration(text)
        except ValueError:
            continue
        if seconds > 0:
            return seconds
    return None
