"""What fits below a limit. Volcano adds up whole amounts, and checks one of several equal tasks after the other."""

from __future__ import annotations

from collections.abc import Sequence

from volcano_py.scheduler.model.resource import Resource
from volcano_py.scheduler.model.resource_names import CPU, MEMORY, PODS


def within(held: Resource, demands: Sequence[tuple[str, float]], limit: Resource, count: int) -> int:
    """The largest number of tasks, up to `count`, with which no demanded amount exceeds its limit."""
    for d, amount in demands:
        if d == CPU:  # called for each pod: without calls of Resource
            have, most = held.milli_cpu, limit.milli_cpu
        elif d == MEMORY:
            have, most = held.memory, limit.memory
        else:
            have, most = held[d], limit[d]
        if have + count * amount <= most:
            continue
        count = min(count, max(int((most - have) // amount), 0))
        while count and have + count * amount > most:  # the division is rounded
            count -= 1
    return count


def exceeded(request: Resource, limit: Resource, held: Sequence[Resource], free: Resource | None = None) -> list[str]:
    """The requested resources, without `pods`, of which the request and `held` without `free` exceed the limit.

    The same as `less_equal_dimension` of the sum, without the sum of other resources.
    """
    found = []
    cpu, memory = request.milli_cpu, request.memory
    if cpu > 0:
        for part in held:
            cpu += part.milli_cpu
        if cpu - (free.milli_cpu if free is not None else 0.0) > limit.milli_cpu:
            found.append(CPU)
    if memory > 0:
        for part in held:
            memory += part.memory
        if memory - (free.memory if free is not None else 0.0) > limit.memory:
            found.append(MEMORY)
    for name, amount in (request.scalars or {}).items():
        if amount > 0 and name != PODS:
            for part in held:
                amount += part[name]
            if amount - (free[name] if free is not None else 0.0) > limit[name]:
                found.append(name)
    return found
