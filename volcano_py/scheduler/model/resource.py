"""Resource: exact amounts of resources, and the operators with which Volcano compares them.

Units are Volcano's: cpu in milli-cores, memory in bytes, `pods` in whole units, every other scalar in
thousandths (one GPU is 1000). A missing scalar, a zero and "no scalars at all" are three different things in
some operators, so `scalars` may be None. Volcano: the data model's Resource.

Names of operators follow Volcano's, in snake case. A rule "for a missing value" is passed as `ZERO` or
`INFINITY`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from sys import float_info
from typing import Protocol

from volcano_py.api import quantity
from volcano_py.scheduler.model.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, is_scalar_name

EPS = 0.1
"""Amounts that differ by less are equal."""
ZERO = 0.0
INFINITY = -1.0
"""The two values of a missing scalar; they occur in the results of `diff`."""
MAX = float_info.max
MAX_INT = float(2**63 - 1)

EXACT = 2.0**53
"""Below this limit amounts are whole numbers, so that addition and subtraction are exact."""


class Resource:
    """An amount. Arithmetic is in place and returns self, as in Volcano; call `clone()` first to keep the original."""

    __slots__ = ("max_task_num", "memory", "milli_cpu", "scalars")

    def __init__(
        self,
        milli_cpu: float = 0.0,
        memory: float = 0.0,
        scalars: dict[str, float] | None = None,
        max_task_num: int = 0,
    ) -> None:
        self.milli_cpu = milli_cpu
        self.memory = memory
        self.scalars = scalars
        self.max_task_num = max_task_num

    @classmethod
    def parse(cls, amounts: Mapping[str, str | int | float] | None, ignored: Iterable[str] = ()) -> Resource:
        """Read a Kubernetes resource list; names that the scheduler does not count are ignored.

        Raises ValueError (with resource and text) for an invalid quantity.
        """
        r = cls()
        for name, text in (amounts or {}).items():
            try:
                r._parse_one(name, text, ignored)
            except ValueError as e:
                raise ValueError(f"{name}: {e}") from None
        return r

    def _parse_one(self, name: str, text: str | int | float, ignored: Iterable[str]) -> None:
        if name == CPU:
            self.milli_cpu += quantity.milli_value(text)
        elif name == MEMORY:
            self.memory += quantity.value(text)
        elif name == PODS:
            pods = quantity.value(text)
            self.max_task_num += pods
            self.add_scalar(PODS, pods)
        elif name == EPHEMERAL_STORAGE or (
            not name.startswith("count/") and is_scalar_name(name) and name not in ignored
        ):
            self.add_scalar(name, quantity.milli_value(text))

    @classmethod
    def infinite(cls) -> Resource:
        return cls(MAX, MAX, None, 2**63 - 1)

    def clone(self) -> Resource:
        return Resource(
            self.milli_cpu,
            self.memory,
            None if self.scalars is None else dict(self.scalars),
            self.max_task_num,
        )

    # ---- reading -------------------------------------------------------------------------------------------

    def __getitem__(self, name: str) -> float:
        if name == CPU:
            return self.milli_cpu
        if name == MEMORY:
            return self.memory
        return self.scalars.get(name, 0.0) if self.scalars else 0.0

    def __setitem__(self, name: str, amount: float) -> None:
        if name == CPU:
            self.milli_cpu = amount
        elif name == MEMORY:
            self.memory = amount
        else:
            if self.scalars is None:
                self.scalars = {}
            self.scalars[name] = amount

    def __contains__(self, name: str) -> bool:
        return name in (CPU, MEMORY) or bool(self.scalars and name in self.scalars)

    def keys(self) -> list[str]:
        """cpu, memory and every scalar that is present, whatever its amount."""
        return [CPU, MEMORY, *(self.scalars or ())]

    def names(self) -> list[str]:
        """The dimensions with an amount of at least EPS, including `pods`."""
        found = [CPU] if self.milli_cpu >= EPS else []
        if self.memory >= EPS:
            found.append(MEMORY)
        return found + [d for d, amount in self.scalars.items() if amount >= EPS] if self.scalars else found

    @property
    def exact(self) -> bool:
        """Whether all amounts are small enough for exact arithmetic."""
        if not (abs(self.milli_cpu) < EXACT and abs(self.memory) < EXACT):
            return False
        for amount in (self.scalars or {}).values():  # called for each queue in each session
            if not abs(amount) < EXACT:
                return False
        return True

    def is_empty(self) -> bool:
        """Whether only `pods` has an amount: the request of a best-effort pod."""
        if self.milli_cpu >= EPS or self.memory >= EPS:
            return False
        return all(v < EPS for k, v in (self.scalars or {}).items() if k != PODS)

    def is_zero(self, name: str) -> bool:
        if name not in (CPU, MEMORY) and self.scalars is not None and name not in self.scalars:
            raise AssertionError(f"unknown resource {name}")
        return self[name] < EPS

    def as_dict(self) -> dict[str, float]:
        return {CPU: self.milli_cpu, MEMORY: self.memory, **(self.scalars or {})}

    def quantities(self) -> dict[str, str]:
        """The amount as a resource list of the API; cpu and memory are always included."""
        out = {CPU: quantity.format_milli(int(self.milli_cpu)), MEMORY: quantity.format_binary(int(self.memory))}
        for name, value in (self.scalars or {}).items():
            out[name] = str(int(value)) if name == PODS else quantity.format_milli(int(value))
        return out

    def __repr__(self) -> str:
        parts = [f"cpu {_text(self.milli_cpu)}", f"memory {_text(self.memory)}"]
        parts += [f"{k} {_text(v)}" for k, v in sorted((self.scalars or {}).items())]
        return ", ".join(parts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Resource):
            return NotImplemented
        return (self.milli_cpu, self.memory, self.scalars) == (other.milli_cpu, other.memory, other.scalars)

    __hash__ = None  # type: ignore[assignment]

    # ---- arithmetic ----------------------------------------------------------------------------------------

    def add_scalar(self, name: str, amount: float) -> None:
        if self.scalars is None:
            self.scalars = {}
        self.scalars[name] = self.scalars.get(name, 0.0) + amount

    def add(self, other: Resource) -> Resource:
        self.milli_cpu += other.milli_cpu
        self.memory += other.memory
        if other.scalars:
            mine = self.scalars
            if mine is None:
                mine = self.scalars = {}
            for name, amount in other.scalars.items():
                mine[name] = mine.get(name, 0.0) + amount
        return self

    def sub(self, other: Resource) -> Resource:
        """Subtract an amount that is contained in this one; raises AssertionError if it is not."""
        if not other.less_equal(self, ZERO):
            raise AssertionError(f"resource is not sufficient to do operation: <{self}> sub <{other}>")
        return self.sub_unchecked(other)

    def sub_unchecked(self, other: Resource) -> Resource:
        """Subtract; the result may be negative. Scalars of `other` count only if this amount has scalars at all."""
        self.milli_cpu -= other.milli_cpu
        self.memory -= other.memory
        if self.scalars is not None and other.scalars:
            for name, amount in other.scalars.items():
                self.scalars[name] = self.scalars.get(name, 0.0) - amount
        return self

    def multi(self, factor: float) -> Resource:
        self.milli_cpu *= factor
        self.memory *= factor
        if self.scalars:
            for name in self.scalars:
                self.scalars[name] *= factor
        return self

    def times(self, factor: float) -> Resource:
        """A multiple, as a new amount."""
        return self.clone().multi(factor)

    def set_max(self, other: Resource) -> Resource:
        """Raise each dimension to at least the other's."""
        self.milli_cpu = max(self.milli_cpu, other.milli_cpu)
        self.memory = max(self.memory, other.memory)
        if other.scalars:
            if self.scalars is None:
                self.scalars = dict(other.scalars)
            else:
                for name, amount in other.scalars.items():
                    if amount > self.scalars.get(name, 0.0) or name not in self.scalars:
                        self.scalars[name] = amount
        return self

    def min_dimension(self, other: Resource, default: float) -> Resource:
        """Lower each dimension to the other's; a scalar the other lacks becomes 0 (ZERO) or stays
        (INFINITY)."""
        self.milli_cpu = min(self.milli_cpu, other.milli_cpu)
        self.memory = min(self.memory, other.memory)
        if self.scalars is not None:
            theirs = other.scalars or {}
            for name, amount in self.scalars.items():
                if name in theirs:
                    self.scalars[name] = min(amount, theirs[name])
                elif default == ZERO:
                    self.scalars[name] = 0.0
        return self

    def diff(self, other: Resource, default: float) -> tuple[Resource, Resource]:
        """(increased, decreased) from `other` to this amount; missing scalars count as `default`."""
        cpu, memory = self.milli_cpu - other.milli_cpu, self.memory - other.memory
        more: dict[str, float] = {}
        less: dict[str, float] = {}
        mine, theirs = self.scalars or {}, other.scalars or {}
        for name in {**mine, **theirs}:
            a, b = mine.get(name, default), theirs.get(name, default)
            if default == INFINITY and a == INFINITY:
                more[name] = INFINITY
            elif default == INFINITY and b == INFINITY:
                less[name] = INFINITY
            elif a > b:
                more[name] = a - b
            else:
                less[name] = b - a
        increased = Resource(cpu if cpu > 0 else 0.0, memory if memory > 0 else 0.0, more)
        return increased, Resource(-cpu if cpu < 0 else 0.0, -memory if memory < 0 else 0.0, less)

    # ---- comparisons: whole amounts ------------------------------------------------------------------------

    def less(self, other: Resource, default: float) -> bool:
        """Strictly smaller in every dimension of this amount."""
        if not (self.milli_cpu < other.milli_cpu and self.memory < other.memory):
            return False
        return self._scalars_all(other, default, lambda a, b: a < b)

    def less_equal(self, other: Resource, default: float) -> bool:
        """Not larger (within EPS) in cpu, memory and the scalars of this amount, `pods` included."""
        if self.milli_cpu - other.milli_cpu >= EPS or self.memory - other.memory >= EPS:
            return False
        if default == ZERO:
            theirs = other.scalars or {}
            return not self.scalars or all(v - theirs.get(k, 0.0) < EPS for k, v in self.scalars.items())
        return self._scalars_all(other, default, lambda a, b: a - b < EPS)

    def _scalars_all(self, other: Resource, default: float, holds: _Compare) -> bool:
        mine, theirs = self.scalars or {}, other.scalars or {}
        if default == INFINITY and any(name not in mine for name in theirs):
            return False
        for name, amount in mine.items():
            if name in theirs:
                if not holds(amount, theirs[name]):
                    return False
            elif default == ZERO and not holds(amount, 0.0):
                return False
        return True

    def less_equal_names(self, other: Resource, default: float) -> tuple[bool, list[str]]:
        """`less_equal` with the names that are too large (LessEqualWithResourcesName)."""
        lacking = []
        theirs = other.scalars or {}
        for name in self.keys():
            if name not in (CPU, MEMORY) and name not in theirs and default == INFINITY:
                continue
            if self[name] - other[name] >= EPS:
                lacking.append(name)
        return not lacking, lacking

    def less_equal_dimension(self, other: Resource | None, request: Resource | None) -> tuple[bool, list[str]]:
        """Only the dimensions requested, strictly, `pods` ignored
        (LessEqualWithDimensionAndResourcesName)."""
        if other is None:
            return False, self.names()
        if request is None:
            return self.less_equal_names(other, ZERO)
        lacking = [d for d in (CPU, MEMORY) if request[d] > 0 and self[d] > other[d]]
        if self.scalars is not None:
            lacking += [d for d, v in (request.scalars or {}).items() if v > 0 and d != PODS and self[d] > other[d]]
        return not lacking, lacking

    def less_partly(self, other: Resource, default: float) -> bool:
        return self._partly(other, default, lambda a, b: a < b)

    def less_equal_partly(self, other: Resource, default: float) -> bool:
        return self._partly(other, default, lambda a, b: a - b < EPS)

    def _partly(self, other: Resource, default: float, holds: _Compare) -> bool:
        if holds(self.milli_cpu, other.milli_cpu) or holds(self.memory, other.memory):
            return True
        mine, theirs = self.scalars or {}, other.scalars or {}
        if default == ZERO and any(name not in mine for name in theirs):
            return True
        for name, amount in mine.items():
            if name in theirs:
                if holds(amount, theirs[name]):
                    return True
            elif default == INFINITY or holds(amount, 0.0):
                return True
        return False

    def less_equal_partly_dimension(
        self, other: Resource, request: Resource | None, drop_zero: bool = False
    ) -> tuple[bool, list[str]]:
        """Whether some requested dimension is not larger, and which; `drop_zero` leaves out 0-against-0."""
        if request is None:
            return False, []
        names = [
            d
            for d in request.keys()
            if d != PODS
            and request[d] > 0
            and not (drop_zero and self[d] < EPS and other[d] < EPS)
            and self[d] - other[d] < EPS
        ]
        return bool(names), names

    def equal(self, other: Resource, default: float = ZERO) -> bool:
        """Equal within EPS in cpu, memory and the scalars of this amount."""
        return all(abs(self[d] - other[d]) < EPS for d in self.keys())

    def greater_partly(self, other: Resource, default: float) -> bool:
        return not self.less_equal_names(other, default)[0]

    def greater_partly_dimension(self, other: Resource | None, request: Resource | None) -> tuple[bool, list[str]]:
        """Whether some requested dimension is strictly larger, and which."""
        if request is None:
            return False, []
        names = [d for d in request.keys() if d != PODS and request[d] > 0 and self[d] > (other[d] if other else 0.0)]
        return bool(names), names

    def greater_partly_relevant(self, other: Resource | None, request: Resource | None) -> tuple[bool, list[str]]:
        """As `greater_partly_dimension`, only over dimensions that `other` has (cpu and memory: with an amount)."""
        if request is None:
            return False, []
        theirs = other or Resource()
        names = []
        for d in request.keys():
            relevant = theirs[d] >= EPS if d in (CPU, MEMORY) else d in (theirs.scalars or {})
            if d != PODS and request[d] > 0 and relevant and self[d] > theirs[d]:
                names.append(d)
        return bool(names), names


class _Compare(Protocol):
    """The signature of a comparison of two amounts."""

    def __call__(self, a: float, b: float) -> bool: ...


def exceeded_part(left: Resource, right: Resource | None) -> Resource:
    """By how much `left` is larger, per dimension."""
    if right is None:
        return left
    return left.diff(right, ZERO)[0]


def minimum(a: Resource, b: Resource) -> Resource:
    """The smaller of each dimension; scalars only if both have some."""
    r = Resource(min(a.milli_cpu, b.milli_cpu), min(a.memory, b.memory))
    if a.scalars is not None and b.scalars is not None:
        r.scalars = {k: min(v, b.scalars.get(k, 0.0)) for k, v in a.scalars.items()}
    return r


def maximum(a: Resource, b: Resource) -> Resource:
    """The larger of each dimension of both. A scalar that is zero in both is left out."""
    r = Resource(max(a.milli_cpu, b.milli_cpu), max(a.memory, b.memory))
    if a.scalars is not None or b.scalars is not None:
        names = [*(a.scalars or {}), *(b.scalars or {})]
        r.scalars = {k: v for k in dict.fromkeys(names) if (v := max(a[k], b[k])) > 0}
    return r


def intersection(a: Resource, b: Resource, ignore_pods: bool = False) -> list[str]:
    """The dimensions in which both have an amount."""
    theirs = set(b.names())
    return [d for d in a.names() if d in theirs and not (ignore_pods and d == PODS)]


def share(amount: float, of: float) -> float:
    """An amount divided by another; 1 if the divisor is 0 and the amount is not."""
    if of == 0:
        return 0.0 if amount == 0 else 1.0
    return amount / of


def _text(amount: float) -> str:
    if amount == MAX:
        return "maxFloat"
    if amount == MAX_INT:
        return "maxInt"
    return f"{amount:.2f}"
