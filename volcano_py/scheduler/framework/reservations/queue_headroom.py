"""What of a gang the limits of its queue, and of the queues above it, do not permit now. Not in Volcano.

The plugins with limits answer for amounts: a queue that may hold 53.75 more pods lacks less than one that may hold 53.
One that answers only for tasks is called for a pod of each kind: if it rejects one, all of the gang is lacking.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.framework.reservations.earliest_start import GangMembers
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.queue import Queue


class LackingAmounts(NamedTuple):
    """What must become free in a queue and those below it before a gang can start."""

    queue: str
    amounts: NDArray[np.float64]
    """By resource of the node table."""


def lacking_in_queues(session: Session, queue: Queue, gang: Sequence[GangMembers]) -> list[LackingAmounts]:
    """For each limit that does not permit the gang now; empty: all do."""
    rows = session.table.rows
    needs = sum((members.needs * members.count for members in gang), np.zeros(len(rows)))
    tasks = [members.tasks[0] for members in gang]
    names = sorted({name for task in tasks for name, _ in task.spec_class.demands if name in rows})
    found = []
    for limit in session.limits.left(queue, names):
        lacking = np.zeros(len(rows))
        for name, left in limit.left.items():
            lacking[rows[name]] = max(0.0, needs[rows[name]] - left)
        if lacking.any():
            found.append(LackingAmounts(limit.queue, lacking))
    if not found and not all(session.limits.allocatable(queue, task) for task in tasks):
        found.append(LackingAmounts(queue.name, needs))
    return found
