"""The share of a whole, such as the cluster, that amounts are by their largest resource. Volcano: the loops over
ResourceNames of drf and proportion.
"""

from __future__ import annotations

from collections.abc import Collection
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.resource import Resource
from volcano_py.scheduler.model.resource_names import CPU, MEMORY


class CountedResources(NamedTuple):
    """The amounts of the whole that count. Sessions divide by them for each pod that is placed, so that cpu and memory
    are fields: infinite if they do not count."""

    milli_cpu: float = inf
    memory: float = inf
    scalars: tuple[tuple[str, float], ...] = ()

    @classmethod
    def of(cls, whole: Resource, names: Collection[str] = ()) -> CountedResources:
        """The resources of which there is any; of `names` only, if it has any."""
        counted = [name for name in whole.names() if whole[name] > 0 and (not names or name in names)]
        return cls(
            whole.milli_cpu if CPU in counted else inf,
            whole.memory if MEMORY in counted else inf,
            tuple((name, whole[name]) for name in counted if name not in (CPU, MEMORY)),
        )


def counted_resources(session: Session, names: Collection[str] = ()) -> CountedResources:
    """The resources of the cluster that count; without names: all."""
    return CountedResources.of(session.total, names)


def share_of(amounts: Resource, counted: CountedResources) -> float:
    """The share, by the largest of the resources that count; 0 without any."""
    cpu, memory, scalars = counted
    largest, part = amounts.milli_cpu / cpu, amounts.memory / memory
    if part > largest:
        largest = part
    if scalars and (mine := amounts.scalars):
        for name, whole in scalars:
            part = mine.get(name, 0.0) / whole
            if part > largest:
                largest = part
    return largest if largest > 0.0 else 0.0


def share_of_both(first: Resource, second: Resource, counted: CountedResources) -> float:
    """`share_of` the sum of two amounts."""
    cpu, memory, scalars = counted
    largest, part = (first.milli_cpu + second.milli_cpu) / cpu, (first.memory + second.memory) / memory
    if part > largest:
        largest = part
    for name, whole in scalars:
        part = (first[name] + second[name]) / whole
        if part > largest:
            largest = part
    return largest if largest > 0.0 else 0.0


def largest_share(session: Session, amounts: NDArray[np.float64]) -> float:
    """`amounts`: by resource of the node table."""
    total, rows = session.total, session.table.rows
    return max((float(amounts[row]) / total[name] for name, row in rows.items() if total[name] > 0), default=0.0)
