"""The jobs of one queue in their order. Volcano: the PriorityQueue of jobs, with JobOrderFn.

Most jobs are popped once. They are sorted together before the first pop; only jobs that are pushed back wait in a heap.
"""

from __future__ import annotations

import heapq
from typing import Any

from volcano_py.scheduler.framework.jobs.session_job import SessionJob

_Entry = tuple[tuple[Any, ...], SessionJob]
"""The sort key, which differs for all jobs, and the job."""


class JobQueue:
    """Jobs by their sort keys; `pop` returns the job with the lowest key."""

    __slots__ = ("_again", "_first", "_sorted")

    def __init__(self) -> None:
        self._first: list[_Entry] = []
        """The jobs pushed before the first pop; once sorted, the lowest key is the last."""
        self._sorted = False
        self._again: list[_Entry] = []
        """A heap of the jobs pushed later."""

    def __bool__(self) -> bool:
        return bool(self._first or self._again)

    def push(self, key: tuple[Any, ...], job: SessionJob) -> None:
        if self._sorted:
            heapq.heappush(self._again, (key, job))
        else:
            self._first.append((key, job))

    def pop(self) -> SessionJob:
        """Remove and return the first job. Raises IndexError when empty."""
        if not self._sorted:
            self._first.sort(reverse=True)
            self._sorted = True
        if self._again and (not self._first or self._again[0] < self._first[-1]):
            return heapq.heappop(self._again)[1]
        return self._first.pop()[1]
