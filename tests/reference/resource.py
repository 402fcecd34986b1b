"""Amounts of resources. Volcano: Resource.

cpu is in milli-cores, memory in bytes, scalars in thousandths (pods: whole). `scalars` may be None, which is not
the same as an empty dict in a few operations.
"""

from __future__ import annotations

import math
import re
from typing import Any

from volcano_py.api.quantity import milli_value, value

EPS = 0.1
INFINITE = math.inf
_QUALIFIED = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")


class Resource:
    """Mutable; operations that are in place in Volcano are in place here too."""

    def __init__(self, cpu: float = 0.0, memory: float = 0.0, scalars: dict[str, float] | None = None) -> None:
        self.cpu = cpu
        self.memory = memory
        self.scalars = scalars
        self.max_tasks = 0

    def __repr__(self) -> str:
        return f"Resource(cpu={self.cpu}, memory={self.memory}, {self.scalars})"

    def clone(self) -> Resource:
        copy = Resource(self.cpu, self.memory, None if self.scalars is None else dict(self.scalars))
        copy.max_tasks = self.max_tasks
        return copy

    def get(self, name: str) -> float:
        if name == "cpu":
            return self.cpu
        if name == "memory":
            return self.memory
        return (self.scalars or {}).get(name, 0.0)

    def add_scalar(self, name: str, amount: float) -> None:
        if self.scalars is None:
            self.scalars = {}
        self.scalars[name] = self.scalars.get(name, 0.0) + amount

    def names(self) -> list[str]:
        """The resources with an amount, `pods` included."""
        found = []
        for name in ("cpu", "memory", *(self.scalars or {})):
            if self.get(name) >= EPS:
                found.append(name)
        return found

    def is_empty(self) -> bool:
        """Whether only `pods` has an amount."""
        if self.cpu >= EPS or self.memory >= EPS:
            return False
        return all(v < EPS for k, v in (self.scalars or {}).items() if k != "pods")

    def add(self, other: Resource) -> Resource:
        self.cpu += other.cpu
        self.memory += other.memory
        for name, amount in (other.scalars or {}).items():
            self.add_scalar(name, amount)
        return self

    def sub(self, other: Resource) -> Resource:
        """Subtract without a check of the amount. Without own scalars, none are subtracted."""
        self.cpu -= other.cpu
        self.memory -= other.memory
        if self.scalars is not None:
            for name, amount in (other.scalars or {}).items():
                self.scalars[name] = self.scalars.get(name, 0.0) - amount
        return self

    def multi(self, factor: float) -> Resource:
        self.cpu *= factor
        self.memory *= factor
        for name in self.scalars or {}:
            self.scalars[name] *= factor
        return self

    def set_max(self, other: Resource) -> None:
        self.cpu = max(self.cpu, other.cpu)
        self.memory = max(self.memory, other.memory)
        for name, amount in (other.scalars or {}).items():
            if self.scalars is None:
                self.scalars = {}
            if name not in self.scalars or amount > self.scalars[name]:
                self.scalars[name] = amount

    def min_dimension(self, other: Resource, missing: str) -> None:
        """The smaller amount per resource; a resource that `other` lacks is "zero" or "infinity"."""
        self.cpu = min(self.cpu, other.cpu)
        self.memory = min(self.memory, other.memory)
        for name in self.scalars or {}:
            if other.scalars is not None and name in other.scalars:
                self.scalars[name] = min(self.scalars[name], other.scalars[name])
            elif missing == "zero":
                self.scalars[name] = 0.0

    def less_equal(self, other: Resource) -> bool:
        """Whether cpu, memory and the own scalars (with `pods`) fit; a resource that `other` lacks is 0."""
        return all(is_within(self.get(n), other.get(n)) for n in ("cpu", "memory", *(self.scalars or {})))

    def less_equal_requested(self, other: Resource, requested: Resource) -> bool:
        """Strictly, and only for resources in `requested` other than `pods`."""
        for name in ("cpu", "memory", *(requested.scalars or {})):
            if name == "pods" or requested.get(name) <= 0:
                continue
            if name not in ("cpu", "memory") and self.scalars is None:
                continue
            if self.get(name) > other.get(name):
                return False
        return True

    def is_about(self, other: Resource) -> bool:
        """Equal except for fractions, which no status contains."""
        names = {"cpu", "memory", *(self.scalars or {}), *(other.scalars or {})}
        return all(abs(self.get(name) - other.get(name)) < 1 for name in names)

    def same(self, other: Resource) -> bool:
        """Exactly equal; no scalars and an empty dict are the same."""
        return (self.cpu, self.memory, self.scalars or {}) == (other.cpu, other.memory, other.scalars or {})


def is_within(a: float, b: float) -> bool:
    return a < b or abs(a - b) < EPS


def parse(amounts: dict[str, Any] | None) -> Resource:
    """A Kubernetes resource list."""
    r = Resource()
    for name, quantity in (amounts or {}).items():
        if name == "cpu":
            r.cpu += milli_value(quantity)
        elif name == "memory":
            r.memory += value(quantity)
        elif name == "pods":
            r.max_tasks += value(quantity)
            r.add_scalar("pods", float(value(quantity)))
        elif name == "ephemeral-storage":
            r.add_scalar(name, float(milli_value(quantity)))
        elif name.startswith("count/"):
            continue
        elif is_scalar_name(name):
            r.add_scalar(name, float(milli_value(quantity)))
    return r


def is_scalar_name(name: str) -> bool:
    """A resource that kube-scheduler counts as a scalar: extended, huge pages, kubernetes.io/, volumes."""
    if name.startswith(("hugepages-", "attachable-volumes-")) or "kubernetes.io/" in name:
        return True
    return "/" in name and not name.startswith("requests.") and bool(_QUALIFIED.fullmatch("requests." + name))


def diff(left: Resource, right: Resource) -> tuple[Resource, Resource]:
    """What left has more, and what right has more (0 where they are equal); missing resources are 0."""
    more, less = Resource(scalars={}), Resource(scalars={})
    if left.cpu > right.cpu:
        more.cpu = left.cpu - right.cpu
    else:
        less.cpu = right.cpu - left.cpu
    if left.memory > right.memory:
        more.memory = left.memory - right.memory
    else:
        less.memory = right.memory - left.memory
    for name in {**(left.scalars or {}), **(right.scalars or {})}:
        a, b = left.get(name), right.get(name)
        if a > b:
            more.scalars[name] = a - b
        else:
            less.scalars[name] = b - a
    return more, less


def exceeded_part(left: Resource, right: Resource | None) -> Resource:
    if right is None:
        return left
    return diff(left, right)[0]


def greater_of(a: Resource, b: Resource) -> Resource:
    """The larger amount per resource; negative amounts never win. Volcano: helpers.Max."""
    result = Resource(max(a.cpu, b.cpu), max(a.memory, b.memory))
    if a.scalars is None and b.scalars is None:
        return result
    result.scalars = {}
    for side in (a, b):
        for name, amount in (side.scalars or {}).items():
            if amount > result.scalars.get(name, 0.0):
                result.scalars[name] = amount
    return result


def share(part: float, whole: float) -> float:
    if whole == 0:
        return 0.0 if part == 0 else 1.0
    return part / whole


def dominant_share(part: Resource, whole: Resource) -> float:
    """The largest share of any resource that `whole` has; 0 if it has none."""
    greatest = 0.0
    for name in whole.names():
        greatest = max(greatest, share(part.get(name), whole.get(name)))
    return greatest
