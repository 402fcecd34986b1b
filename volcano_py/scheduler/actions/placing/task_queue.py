"""The order of a job's tasks. Volcano: TaskOrderFn with CompareTask behind it.

The order is a sort key where possible: the keys of the plugins, the number at the end of the pod's name, age, UID. If
only some of the names have a number, pairs are compared. If the order changes while tasks are placed (task-topology),
it is a heap that compares again with each pop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cmp_to_key
from typing import Any, Protocol, SupportsIndex

from volcano_py.scheduler.framework.extension_points.orders import Orders
from volcano_py.scheduler.framework.jobs.priority_queue import PriorityQueue
from volcano_py.scheduler.model.jobs.task import Task


class TaskQueue(Protocol):
    """The tasks that wait, the first one last. A list, or a list whose `pop()` selects the first one: the type is not
    `list`, so that compiled code calls the method of the queue."""

    def pop(self, index: SupportsIndex = -1, /) -> Task: ...

    def copy(self) -> TaskQueue: ...

    def clear(self) -> None: ...

    def sort(self, *, key: Callable[[Task], Any]) -> None: ...

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Task]: ...

    def __getitem__(self, index: Any, /) -> Any: ...

    def __delitem__(self, index: Any, /) -> None: ...


class _Heap(list[Task]):
    """A list whose `pop()` selects the first task each time, as in Volcano's heap. After `sort`, tasks with a higher
    key come first."""

    def __init__(self, orders: Orders, tasks: Iterable[Task] = ()) -> None:
        super().__init__()
        self._orders = orders
        self._key: Callable[[Task], Any] | None = None
        self._queue: PriorityQueue[Task] = PriorityQueue(self._before, self)
        for task in tasks:
            self._queue.push(task)

    def _before(self, left: Task, right: Task) -> bool:
        if self._key is not None and (a := self._key(left)) != (b := self._key(right)):
            return bool(a > b)
        return self._orders.task_before(left, right)

    def pop(self, index: SupportsIndex = -1) -> Task:
        return self._queue.pop()

    def sort(self, *, key: Any = None, reverse: bool = False) -> None:
        tasks = list(self)
        self.clear()
        self._key = key
        for task in tasks:
            self._queue.push(task)

    def put(self, task: Task) -> None:
        """Add a task in its place; `append` would add it at the end of the heap."""
        self._queue.push(task)

    def copy(self) -> _Heap:
        other = _Heap(self._orders)
        other.extend(self)
        other._key = self._key
        return other


def refill(queue: TaskQueue, tasks: Iterable[Task]) -> None:
    """Replace the content of a queue by tasks of the same job, which are in the order of the queue before."""
    queue.clear()
    for task in tasks:
        if isinstance(queue, _Heap):
            queue.put(task)
        elif isinstance(queue, list):
            queue.append(task)


def task_queue(orders: Orders, tasks: Iterable[Task]) -> TaskQueue:
    """The tasks, the first one last: remove them with `pop()`, and duplicate them with `copy()`. A list is sorted in
    place."""
    found: list[Task] = tasks if isinstance(tasks, list) else list(tasks)
    if len(found) < 2:
        return found
    if orders.task_order_moves:
        return _Heap(orders, found)
    numbered = sum(t.index is not None for t in found)
    if numbered == len(found):
        found.sort(key=lambda t: (orders.task_key(t), t.index, t.created, t.uid), reverse=True)
    elif numbered == 0:
        found.sort(key=lambda t: (orders.task_key(t), t.created, t.uid), reverse=True)
    else:
        found.sort(key=cmp_to_key(lambda a, b: 1 if orders.task_before(a, b) else -1))
    return found
