"""The CPUs of a node, and their assignment to containers. Kubernetes: kubelet's CPU manager, policy static."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from typing import NamedTuple

from volcano_py.api import quantity
from volcano_py.api.nodeinfo import CPU_MANAGER_POLICY, TOPOLOGY_MANAGER_POLICY, Numatopology

Cpus = frozenset[int]


class CpuPlace(NamedTuple):
    """The position of a CPU in the topology."""

    numa: int
    socket: int
    core: int


class CpuTopology:
    """The CPUs of one node. `exact`: CPUs are assigned as kubelet assigns them, else as Volcano does."""

    def __init__(self, places: Mapping[int, CpuPlace], reserved: int, exact: bool) -> None:
        self.places = dict(places)
        self.exact = exact
        self._reserved = reserved

    @cached_property
    def numa_nodes(self) -> tuple[int, ...]:
        """The numbers of the NUMA nodes, in order."""
        return tuple(sorted({p.numa for p in self.places.values()}))

    @cached_property
    def reserved(self) -> Cpus:
        """The CPUs that kubelet reserves for the system."""
        return self.take(frozenset(self.places), self._reserved) or frozenset()

    @cached_property
    def key(self) -> tuple[object, ...]:
        """Equal for topologies that give equal results."""
        return (tuple(sorted(self.places.items())), self._reserved, self.exact)

    def on(self, numa_nodes: Collection[int], cpus: Iterable[int]) -> Cpus:
        """The CPUs that are on the NUMA nodes."""
        return frozenset(c for c in cpus if c in self.places and self.places[c].numa in numa_nodes)

    def take(self, available: Cpus, number: int) -> Cpus | None:
        """The given number of available CPUs: whole sockets first, then whole cores, then single CPUs; None if there
        are too few."""
        left = {c for c in available if c in self.places}
        if number <= 0:
            return frozenset()
        if len(left) < number:
            return None
        taken: set[int] = set()
        for level in ("socket", "numa", "core") if self.exact else ("socket", "core"):
            size = len(self.places) // len({getattr(p, level) for p in self.places.values()})
            for group in self._groups(level, left, size):
                if number - len(taken) < size:
                    break
                taken |= group
                left -= group
        for cpu in self._singles(left, taken):
            if len(taken) == number:
                break
            taken.add(cpu)
        return frozenset(taken)

    def _groups(self, level: str, left: set[int], size: int) -> list[set[int]]:
        """The available CPUs of each socket, NUMA node or core that can be assigned as a group.

        Kubelet uses groups that are wholly free. Volcano also uses partly used groups, but only those whose number is
        also the number of an available CPU.
        """
        groups: dict[int, set[int]] = {}
        for cpu in sorted(left):
            groups.setdefault(getattr(self.places[cpu], level), set()).add(cpu)
        eligible = {g: cpus for g, cpus in groups.items() if (len(cpus) == size if self.exact else g in left)}
        if level != "core":
            return [eligible[g] for g in sorted(eligible)]
        socket_of = {g: self.places[min(cpus)].socket for g, cpus in eligible.items()}
        cores_on = {s: sum(socket == s for socket in socket_of.values()) for s in socket_of.values()}
        return [eligible[g] for g in sorted(eligible, key=lambda g: (cores_on[socket_of[g]], socket_of[g], g))]

    def _singles(self, left: set[int], taken: set[int]) -> list[int]:
        """The available CPUs: first those beside assigned CPUs, then those where the fewest are left."""
        on_socket: dict[int, int] = {}
        on_core: dict[int, int] = {}
        near: dict[int, int] = {}
        for cpu in left:
            place = self.places[cpu]
            on_socket[place.socket] = on_socket.get(place.socket, 0) + 1
            on_core[place.core] = on_core.get(place.core, 0) + 1
        for cpu in taken:
            near[self.places[cpu].socket] = near.get(self.places[cpu].socket, 0) + 1

        def order(cpu: int) -> tuple[int, ...]:
            _, socket, core = self.places[cpu]
            return (-near.get(socket, 0), on_socket[socket], on_core[core], socket, core, cpu)

        return sorted(left, key=order)


class NumaNode(NamedTuple):
    """The content of a Numatopology. `available`: the CPUs that containers may get; None: it lists none."""

    cpu_policy: str
    topology_policy: str
    topology: CpuTopology
    available: Cpus | None


def read_numa(obj: Numatopology, exact: bool) -> NumaNode:
    """Read a Numatopology. Invalid CPUs are left out; with too many NUMA nodes, all CPUs are."""
    spec = obj.spec
    policies = spec.policies or {}
    places = {
        int(number): CpuPlace(info.numa, info.socket, info.core)
        for number, info in (spec.cpu_detail or {}).items()
        if number.isdecimal() and 0 <= info.numa < _MOST_NUMA_NUMBERS
    }
    try:
        reserved = -(-quantity.milli_value((spec.res_reserved or {}).get("cpu", "0")) // 1000)
    except ValueError:
        reserved = 0
    cpu = (spec.numares or {}).get("cpu")
    few = len({p.numa for p in places.values()}) <= _MOST_NUMA_NODES
    available = parse_cpus(cpu.allocatable) if cpu is not None and few else None
    return NumaNode(
        policies.get(CPU_MANAGER_POLICY, ""),
        policies.get(TOPOLOGY_MANAGER_POLICY, ""),
        CpuTopology(places, reserved, exact),
        available,
    )


def parse_cpus(text: str) -> Cpus | None:
    """A list of CPUs such as `0-3,8`; None if the text is invalid."""
    found: set[int] = set()
    for part in text.split(",") if text.strip() else ():
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            return None
        end = int(last) if dash else int(first)
        if end < int(first) or end - int(first) > _MOST_CPUS:
            return None
        found.update(range(int(first), end + 1))
    return frozenset(found)


_MOST_NUMA_NODES, _MOST_NUMA_NUMBERS = 8, 64
"""Kubelet's limit: hints are computed for all sets of NUMA nodes."""
_MOST_CPUS = 1 << 16
"""The largest number of CPUs in one range; a text with a larger range would use up the memory."""
