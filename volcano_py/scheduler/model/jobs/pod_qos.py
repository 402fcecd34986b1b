"""The quality of service of a pod. Kubernetes: GetPodQOS."""

from __future__ import annotations

from fractions import Fraction

from volcano_py.api import quantity
from volcano_py.api.core import Pod, ResourceList
from volcano_py.scheduler.model.resource_names import CPU, MEMORY

GUARANTEED, BURSTABLE, BEST_EFFORT = "Guaranteed", "Burstable", "BestEffort"
_COUNTED = (CPU, MEMORY)


def qos_of(pod: Pod) -> str:
    """Guaranteed: every container has limits for cpu and memory, and requests that are equal to them."""
    requests, limits = dict.fromkeys(_COUNTED, Fraction(0)), dict.fromkeys(_COUNTED, Fraction(0))
    complete = True
    for c in (*(pod.spec.init_containers or ()), *(pod.spec.containers or ())):
        _add(requests, c.resources.requests)
        complete = _add(limits, c.resources.limits) == len(_COUNTED) and complete
    if not any(requests.values()) and not any(limits.values()):
        return BEST_EFFORT
    # A request that is not set is equal to its limit.
    equal = all(requests[name] in (limits[name], 0) for name in _COUNTED)
    return GUARANTEED if complete and equal else BURSTABLE


def _add(total: dict[str, Fraction], amounts: ResourceList | None) -> int:
    """Add the amounts above 0 of cpu and memory; returns how many there are."""
    found = 0
    for name in _COUNTED:
        amount = quantity.parse((amounts or {}).get(name, 0))
        if amount > 0:
            total[name] += amount
            found += 1
    return found
