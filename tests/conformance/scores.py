"""Volcano's two sums of node scores, apart; the scheduler needs only both together."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.framework.kernels.applied_rules import total
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.nodes.some_nodes import SomeNodes


def one_sum(
    session: Session, task: Task, which: Literal["order", "batch"], nodes: NDArray[np.intp]
) -> NDArray[np.float64]:
    """NodeOrderFn ("order") or BatchNodeOrderFn ("batch") for some nodes."""
    parts = getattr(session.placement.view(task), which)
    scores: NDArray[np.float64] = np.zeros(len(nodes)) + total(
        parts, task, SomeNodes(session.numbers, nodes), nodes, nodes
    )
    return scores
