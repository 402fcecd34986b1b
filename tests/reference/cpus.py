"""The CPUs of a node: which ones a container gets, and from which NUMA nodes. Volcano: numa-aware's CPU manager."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations
from typing import NamedTuple

Cpus = frozenset[int]
NumaNodes = frozenset[int]


class Hint(NamedTuple):
    """The NUMA nodes that a container may use."""

    nodes: NumaNodes
    preferred: bool

    def is_narrower(self, other: Hint) -> bool:
        """Fewer NUMA nodes, or the smaller bit mask."""
        return self._width() < other._width()

    def _width(self) -> tuple[int, int]:
        return len(self.nodes), sum(1 << n for n in self.nodes)


class Place(NamedTuple):
    numa: int
    socket: int
    core: int


class Topology:
    """`uncertain` becomes true when Volcano leaves open which CPUs are taken."""

    def __init__(self, places: dict[int, Place]) -> None:
        self.places = places
        self.cpus = frozenset(places)
        self.nodes: NumaNodes = frozenset(p.numa for p in places.values())
        self.per_socket = len(places) // max(len({p.socket for p in places.values()}), 1)
        self.per_core = len(places) // max(len({p.core for p in places.values()}), 1)
        self.uncertain = False

    def of_nodes(self, nodes: Iterable[int]) -> Cpus:
        wanted = set(nodes)
        return frozenset(c for c in self.cpus if self.places[c].numa in wanted)

    def in_socket(self, cpus: Cpus, socket: int) -> Cpus:
        return frozenset(c for c in cpus if self.places[c].socket == socket)

    def in_core(self, cpus: Cpus, core: int) -> Cpus:
        return frozenset(c for c in cpus if self.places[c].core == core)

    def take(self, available: Cpus, count: int) -> Cpus | None:
        """Sockets, then cores, then single CPUs; None if there are too few. Volcano: takeByTopology."""
        if count > len(available):
            return None
        taken: Cpus = frozenset()
        left = available
        if count - len(taken) >= self.per_socket:
            sockets = sorted({self.places[c].socket for c in left} & left)
            for i, socket in enumerate(sockets):
                if count - len(taken) < self.per_socket:
                    self.uncertain = self.uncertain or i < len(sockets)
                    break
                taken |= self.in_socket(left, socket)
            left = available - taken
        if count - len(taken) >= self.per_core:
            for core in self._cores(left, taken):
                if count - len(taken) < self.per_core:
                    break
                taken |= self.in_core(left, core)
            left = available - taken
        if count > len(taken):
            for core in self._cores_of_threads(left, taken):
                for cpu in sorted(self.in_core(left, core)):
                    if count > len(taken):
                        taken |= {cpu}
        return taken

    def _cores(self, left: Cpus, taken: Cpus) -> list[int]:
        def less(a: int, b: int) -> bool:
            return len(self.in_socket(taken, a)) > len(self.in_socket(taken, b)) or a < b

        sockets = self._in_order(sorted({self.places[c].socket for c in left}), less)
        return [c for s in sockets for c in sorted({self.places[c].core for c in self.in_socket(left, s)} & left)]

    def _cores_of_threads(self, left: Cpus, taken: Cpus) -> list[int]:
        socket_of = {p.core: p.socket for p in self.places.values()}

        def less(a: int, b: int) -> bool:
            s, t = socket_of[a], socket_of[b]
            return (
                len(self.in_socket(taken, s)) > len(self.in_socket(taken, t))
                or len(self.in_socket(left, s)) < len(self.in_socket(left, t))
                or len(self.in_core(left, a)) < len(self.in_core(left, b))
                or s < t
                or a < b
            )

        return self._in_order(sorted({self.places[c].core for c in left}), less)

    def _in_order(self, items: list[int], less: Callable[[int, int], bool]) -> list[int]:
        """The criteria are alternatives, not levels: they need not give an order."""
        if any(less(a, b) == less(b, a) for a, b in combinations(items, 2)):
            self.uncertain = True
        wins = {a: sum(less(a, b) for b in items if b != a) for a in items}
        self.uncertain = self.uncertain or len(set(wins.values())) < len(items)
        return sorted(items, key=lambda a: -wins[a])

    def hints(self, available: Cpus, count: int) -> list[Hint]:
        """Every combination of NUMA nodes with enough available CPUs; those of the smallest possible size, by all CPUs,
        are preferred."""
        least = len(self.nodes)
        found = []
        for size in range(1, len(self.nodes) + 1):
            for nodes in combinations(sorted(self.nodes), size):
                of = self.of_nodes(nodes)
                if len(of) >= count:
                    least = min(least, size)
                if len(of & available) >= count:
                    found.append(frozenset(nodes))
        return [Hint(nodes, len(nodes) == least) for nodes in found]

    def assign(self, available: Cpus, count: int, hint: Hint) -> Cpus:
        """CPUs of the hint's NUMA nodes first; none if there are too few."""
        near = available & self.of_nodes(hint.nodes)
        first = self.take(near, min(len(near), count)) or frozenset()
        rest = self.take(available - first, count - len(first))
        return frozenset() if rest is None else first | rest


def parse_cpus(text: str) -> Cpus:
    """`0-3,7`"""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)


def best_hint(policy: str, every_node: NumaNodes, hints: list[Hint] | None) -> tuple[Hint, bool]:
    """The hint that a container gets under a topology manager policy, and whether it is admitted.

    `hints` is None for a container without whole CPUs, which can use any NUMA node.
    """
    if policy in ("", "none"):
        return Hint(frozenset(), False), True
    if hints is None:
        options = [Hint(every_node, True)]
    elif not hints:
        options = [Hint(every_node, False)]
    else:
        options = hints
        if policy == "single-numa-node":
            options = [h for h in hints if len(h.nodes) == 1 and h.preferred]
    best = Hint(every_node, False)
    for hint in options:
        if hint.preferred != best.preferred:
            best = hint if hint.preferred else best
        elif hint.is_narrower(best):
            best = hint
    return best, policy == "best-effort" or best.preferred
