"""GangCounts: whether a group of tasks is ready, by counting them. Volcano: the counters of JobInfo and SubJobInfo.

A job and each of its sub-jobs count their tasks by status; whether they are ready, pipelined or starving is
arithmetic on these counts and a minimum.
"""

from __future__ import annotations

from collections.abc import Sequence

from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.task import Task


class GangCounts:
    """Number of tasks by status, of best-effort tasks by status, and the minimum."""

    __slots__ = ("best_effort_counts", "counts", "fit_failed_roles", "min_available", "tasks")

    counts: list[int]
    best_effort_counts: Sequence[int]
    min_available: int
    tasks: dict[str, Task]
    fit_failed_roles: frozenset[str]
    """Roles of which a task was rejected by all nodes."""

    def moved(self, task: Task, old: int, new: int, count: int = 1) -> None:
        """Count the change of a task from one status to another, or of `count` tasks of its class and role."""
        self.counts[old] -= count
        self.counts[new] += count
        if task.best_effort:
            self.best_effort_counts = st.counted(self.best_effort_counts, old, -count)
            self.best_effort_counts = st.counted(self.best_effort_counts, new, count)

    @property
    def ready_num(self) -> int:
        c = self.counts
        return c[st.BOUND] + c[st.BINDING] + c[st.RUNNING] + c[st.ALLOCATED] + c[st.SUCCEEDED]

    @property
    def valid_num(self) -> int:
        """How many pods are placed or can still be placed."""
        return self.ready_num + self.counts[st.PIPELINED] + self.counts[st.PENDING]

    @property
    def pending_best_effort(self) -> int:
        return self.best_effort_counts[st.PENDING]

    @property
    def allocated_num(self) -> int:
        c = self.counts
        return c[st.BOUND] + c[st.BINDING] + c[st.RUNNING] + c[st.ALLOCATED]

    def is_ready(self) -> bool:
        return self.ready_num + self.pending_best_effort >= self.min_available

    def is_pipelined(self) -> bool:
        return self.counts[st.PIPELINED] + self.ready_num + self.pending_best_effort >= self.min_available

    def is_starving(self) -> bool:
        return self.counts[st.PIPELINED] + self.ready_num < self.min_available

    def task_has_fit_errors(self, task: Task) -> bool:
        """Whether all nodes have rejected a task of the same role, and would reject this one, too."""
        return task.role != "" and task.role in self.fit_failed_roles
