"""What of a gang the limits of its queue do not permit now, by resource. Not in Volcano.

The plugins with limits answer for whole tasks. The answer needed here is an amount: a queue that may hold 53.75 more
pods lacks less than one that may hold 53. So the question is about small parts of what the gang requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.framework.reservations.earliest_start import GangMembers
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.queue import Queue

_PARTS = 1 << 24
"""A power of two, so that the parts of an amount have no error of rounding."""


def lacking_in_queue(session: Session, queue: Queue, gang: Sequence[GangMembers]) -> NDArray[np.float64]:
    """By resource of the node table."""
    rows = session.table.rows
    lacking = np.zeros(len(rows))
    requested: dict[str, float] = {}
    for members in gang:
        assert members.task is not None
        for name, amount in members.task.spec_class.demands:
            requested[name] = requested.get(name, 0.0) + amount * members.count
    for name, amount in requested.items():
        if name not in rows:
            continue
        task = next(m.task for m in gang if m.task is not None and name in dict(m.task.spec_class.demands))
        parts = session.limits.how_many_allocatable(queue, _requesting(task, name, amount / _PARTS), _PARTS)
        if not parts and session.limits.allocatable(queue, task):
            parts = _PARTS  # how many is unknown
        needs = sum(float(members.needs[rows[name]]) * members.count for members in gang)
        lacking[rows[name]] = needs * (1 - parts / _PARTS)
    return lacking


def _requesting(task: Task, name: str, amount: float) -> Task:
    """A task that requests this amount of one resource, for the question."""
    probe = copy(task)
    probe.spec_class = copy(task.spec_class)
    probe.spec_class.demands = [(name, amount)]
    return probe
