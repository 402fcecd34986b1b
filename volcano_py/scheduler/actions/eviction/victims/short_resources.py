"""Short resources: those for which a gang does not fit, requesting each of them alone. Not in Volcano.

Only queues that hold more than they deserve of a short resource lend to an entitled gang: evicting pods that hold
something else does not help.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.resource import EPS
from volcano_py.scheduler.model.resource_names import PODS

Bools = NDArray[np.bool_]
_MOST_STEPS = 2_000
_MOST_MEMBERS = 200
"""Of larger gangs with several amounts only the sums are compared."""


def short_resources(session: Session, tasks: Sequence[Task], outside: Bools | None) -> frozenset[str]:
    """The resources of the tasks' requests that are short; all of them if none is short alone."""
    table, numbers = session.table, session.numbers
    free = numbers.idle + numbers.releasing - numbers.pipelined
    classes = {t.spec_class.id: t for t in tasks}
    nodes = {id: session.placement.resolvable(t) for id, t in classes.items()}
    if outside is not None:
        nodes = {id: mask & ~outside for id, mask in nodes.items()}
    requested, short = set(), set()
    for name, row in table.rows.items():
        amounts = [(t.spec_class.vector(table).item(row), t.spec_class.id) for t in tasks]
        positive = [(amount, id) for amount, id in amounts if amount > 0]
        if name == PODS or not positive:
            continue
        requested.add(name)
        if not _fits(positive, free[row], nodes):
            short.add(name)
    return frozenset(short or requested)


def _fits(wanted: list[tuple[float, int]], free: NDArray[np.float64], nodes: dict[int, Bools]) -> bool:
    """Whether amounts of one resource fit, each on the nodes of its class."""
    if len({(amount, id) for amount, id in wanted}) == 1:
        amount, id = wanted[0]
        here = free[nodes[id]]
        return int(np.floor((here[here > 0] + EPS) / amount).sum()) >= len(wanted)
    least = min(amount for amount, _ in wanted)
    left = {int(node): float(free[node]) for node in np.flatnonzero(free >= least - EPS)}
    if sum(amount for amount, _ in wanted) > sum(left.values()) + EPS:
        return False
    steps = 0
    order = sorted(wanted, reverse=True)

    def place(i: int) -> bool:
        nonlocal steps
        if i == len(order):
            return True
        amount, id = order[i]
        seen = set()
        for node in sorted((n for n, a in left.items() if a >= amount - EPS), key=lambda n: (left[n], n)):
            if not nodes[id][node]:
                continue
            alike = (left[node], tuple(bool(mask[node]) for mask in nodes.values()))
            if alike in seen:
                continue
            seen.add(alike)
            steps += 1
            if steps > _MOST_STEPS:
                return False
            left[node] -= amount
            if place(i + 1):
                return True
            left[node] += amount
        return False

    return len(order) > _MOST_MEMBERS or place(0)
