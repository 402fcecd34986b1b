"""Extension points that order jobs, sub-jobs, tasks and queues. Volcano: JobOrderFn, SubJobOrderFn, TaskOrderFn,
QueueOrderFn, VictimQueueOrderFn.

Orders of jobs, sub-jobs and tasks are sort keys, so that a list is sorted without comparing pairs; orders of queues
compare two of them, because the order can depend on both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from volcano_py.scheduler.framework.callbacks import Callback, Callbacks
from volcano_py.scheduler.framework.extension_points.table import Comparable
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.jobs.sub_job import SubJob
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.queue import Queue


class TaskRank(NamedTuple):
    """The position of a task among the tasks of its job."""

    key: tuple[Any, ...]
    """The keys of the plugins."""
    number: int | None
    """The number at the end of the pod's name."""
    rest: tuple[float, str]
    """Creation time and UID."""

    def before(self, other: TaskRank) -> bool:
        """Whether this task comes first. Numbers count only if both tasks have one."""
        if self.key != other.key:
            return self.key < other.key
        if self.number != other.number and self.number is not None and other.number is not None:
            return self.number < other.number
        return self.rest < other.rest


class Orders:
    """Which job, task or queue comes first."""

    def __init__(self, callbacks: Callbacks) -> None:
        self.callbacks = callbacks
        self.task_order_moves = False
        """Whether placing a task can change the order of the job's other tasks."""
        self._own_orders: set[str] = set()
        """The plugins whose job order depends on the job alone."""
        self._keeps_ranks = False
        self._queue_orders: Sequence[Callback] = ()

    def add_job_order(self, fn: Callable[[SessionJob], Comparable], *, own: bool = False) -> None:
        """Order the jobs of a queue: the job with the lower key comes first.

        `own`: the key depends on the job alone and changes only when one of its tasks moves; it is then kept until one
        does.

        Called: once per job when an action fills a queue's heap, and again when the job is put back.
        Combination: the keys of all plugins, earlier plugins first; then creation time, then namespace and name.
        Flag: enableJobOrder.
        On error: the plugin's key is 0 for this job.
        """
        self.callbacks.add("job_order", fn)
        (self._own_orders.add if own else self._own_orders.discard)(self.callbacks.plugin)

    def keep_ranks(self) -> None:
        """Keep the ranks of jobs if all orders permit it; called when the enabled callbacks are known."""
        self._queue_orders = self.callbacks.enabled("queue_order")
        self._keeps_ranks = all(c.plugin in self._own_orders for c in self.callbacks.enabled("job_order"))

    def job_key(self, job: SessionJob) -> tuple[Any, ...]:
        """The sort key of a job."""
        return (*self.job_rank(job), job.created, job.uid)

    def job_before(self, left: SessionJob, right: SessionJob) -> bool:
        """Whether the left job comes first."""
        return self.job_key(left) < self.job_key(right)

    def job_rank(self, job: SessionJob) -> tuple[Any, ...]:
        """The plugins' part of a job's sort key; `job_key` has the rest of the order."""
        if not self._keeps_ranks:
            return self.callbacks.key("job_order", job)
        if job.rank is None:
            job.rank = self.callbacks.key("job_order", job)
        return job.rank

    def add_sub_job_order(self, fn: Callable[[SubJob], Comparable]) -> None:
        """Order the sub-jobs of a job: the sub-job with the lower key comes first.

        Called: when allocate, gangpreempt or gangreclaim list what is still to be placed of a job.
        Combination: the keys of all plugins, earlier plugins first; then the number in the sub-job's name, then
        its UID.
        Flag: enabledSubJobOrder.
        On error: the plugin's key is 0 for this sub-job.
        """
        self.callbacks.add("sub_job_order", fn)

    def sub_job_key(self, sub: SubJob) -> tuple[Any, ...]:
        """The sort key of a sub-job."""
        return (*self.callbacks.key("sub_job_order", sub), sub.match_index, sub.uid)

    def add_task_order(self, fn: Callable[[Task], Comparable], *, moves: bool = False) -> None:
        """Order the tasks of a job: the task with the lower key comes first.

        `moves`: placing one task can change the keys of others; they are then compared again each time.

        Called: once per task when an action lists the job's pending tasks.
        Combination: the keys of all plugins, earlier plugins first; then the number at the end of the pods' names, then
        creation time, then UID.
        Flag: enableTaskOrder.
        On error: the plugin's key is 0 for this task.
        """
        self.callbacks.add("task_order", fn)
        self.task_order_moves |= moves

    def task_key(self, task: Task) -> tuple[Any, ...]:
        """The plugins' part of a task's sort key; `task_before` has the rest of the order."""
        return self.callbacks.key("task_order", task)

    def task_rank(self, task: Task) -> TaskRank:
        """The position of a task among the tasks of its job."""
        return TaskRank(self.task_key(task), task.index, (task.created, task.uid))

    def task_before(self, left: Task, right: Task) -> bool:
        """Whether the left task comes first."""
        return self.task_rank(left).before(self.task_rank(right))

    def add_queue_order(self, fn: Callable[[Queue, Queue], int]) -> None:
        """Order the queues: a negative result puts the first argument first, 0 leaves it to the next plugin.

        Called: with two queues, whenever an action selects the next queue.
        Combination: the first result other than 0; then creation time, then name.
        Flag: enableQueueOrder.
        On error: the plugin is skipped.
        """
        self.callbacks.add("queue_order", fn)

    def queue_before(self, left: Queue, right: Queue) -> bool:
        """Whether the left queue comes first."""
        for plugin, fn, _ in self._queue_orders or self.callbacks.enabled("queue_order"):  # `compare`, with fewer calls
            try:
                order = fn(left, right)
                if order:
                    return bool(order < 0)
            except Exception as e:
                self.callbacks.fault(plugin, "queue_order", e, left.name)
        return (left.created, left.name) < (right.created, right.name)

    def add_victim_queue_order(self, fn: Callable[[Queue, Queue, Queue | None], int]) -> None:
        """Order the queues that lose pods: with a negative result, victims of the first queue are evicted first.

        The third argument is the queue of the preemptor.

        Called: with the queues of two victims, when victims are sorted.
        Combination: the first result other than 0; then the reverse of queue_order.
        Flag: none.
        On error: the plugin is skipped.
        """
        self.callbacks.add("victim_queue_order", fn)

    def victim_queue_before(self, left: Queue, right: Queue, preemptor: Queue | None) -> bool:
        """Whether victims of the left queue are evicted first."""
        order = self.callbacks.compare("victim_queue_order", left, right, preemptor)
        return order < 0 if order else not self.queue_before(left, right)
