"""The order of a job's tasks. Volcano: TaskOrderFn with CompareTask behind it.

The order is a sort key wherever it can be: what plugins say, the running number at the end of the pod's name,
age, UID. Only where some of the names have a number and some have not, it has to compare pairs.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cmp_to_key

from volcano_py.scheduler.framework.votes import Votes
from volcano_py.scheduler.model.task import Task


def task_queue(votes: Votes, tasks: Iterable[Task]) -> list[Task]:
    """The tasks, the first one last: take them with `pop()`."""
    found = list(tasks)
    if len(found) < 2:
        return found
    numbered = sum(t.index is not None for t in found)
    if numbered == len(found):
        found.sort(key=lambda t: (votes.task_key(t), t.index, t.created, t.uid), reverse=True)
    elif numbered == 0:
        found.sort(key=lambda t: (votes.task_key(t), t.created, t.uid), reverse=True)
    else:
        found.sort(key=cmp_to_key(lambda a, b: 1 if votes.task_before(a, b) else -1))
    return found
