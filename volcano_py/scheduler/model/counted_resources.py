"""The share of a whole, such as the cluster, that amounts are by their largest resource. Volcano: the loops over
ResourceNames of drf and proportion.
"""

from __future__ import annotations

from collections.abc import Collection
from math import inf
from typing import NamedTuple

from volcano_py.scheduler.model.resource import Resource
from volcano_py.scheduler.model.resource_names import CPU, MEMORY

_NOTHING = Resource()


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


def share_of(amounts: Resource, counted: CountedResources, more: Resource = _NOTHING) -> float:
    """The share of the amounts, and `more`, by the largest of the resources that count; 0 without any."""
    cpu, memory, scalars = counted
    largest, part = (amounts.milli_cpu + more.milli_cpu) / cpu, (amounts.memory + more.memory) / memory
    if part > largest:
        largest = part
    for name, whole in scalars:
        part = (amounts[name] + more[name]) / whole
        if part > largest:
            largest = part
    return largest if largest > 0.0 else 0.0
