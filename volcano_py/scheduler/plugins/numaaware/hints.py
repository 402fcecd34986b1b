"""Topology hints and the policies that select one. Kubernetes: kubelet's topology manager.

A mask has one bit for each NUMA node, at the position of its number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, product
from typing import NamedTuple

from volcano_py.scheduler.plugins.numaaware.cpu_topology import Cpus, CpuTopology

NONE, BEST_EFFORT, RESTRICTED, SINGLE_NUMA_NODE = "none", "best-effort", "restricted", "single-numa-node"


class Hint(NamedTuple):
    """NUMA nodes that can serve a request. `mask` None: any."""

    mask: int | None
    preferred: bool


class NumaChoice(NamedTuple):
    """The result of a policy: the NUMA nodes, and whether the container may run there."""

    hint: Hint
    admitted: bool


def cpu_hints(topology: CpuTopology, available: Cpus, request: int) -> list[Hint]:
    """The NUMA nodes on which this number of CPUs is available. Preferred: the fewest NUMA nodes that can have them
    all."""
    usable = available - topology.reserved
    smallest = len(topology.numa_nodes)
    found = []
    for numa_nodes in _subsets(topology.numa_nodes):
        total = len(topology.on(numa_nodes, topology.places))
        if total >= request and len(numa_nodes) < smallest:
            smallest = len(numa_nodes)
        if len(topology.on(numa_nodes, usable)) >= request:
            found.append(numa_nodes)
    return [Hint(mask_of(numa_nodes), len(numa_nodes) == smallest) for numa_nodes in found]


def choose(policy: str, numa_nodes: Sequence[int], providers: Sequence[dict[str, list[Hint] | None]]) -> NumaChoice:
    """The result of a policy for the hints of all providers, by resource. None: a provider has no preference."""
    if policy not in (BEST_EFFORT, RESTRICTED, SINGLE_NUMA_NODE):
        return NumaChoice(Hint(None, False), True)
    lists = list(_lists(providers))
    if policy == SINGLE_NUMA_NODE:
        lists = [[h for h in hints if h.preferred and (h.mask is None or h.mask.bit_count() == 1)] for hints in lists]
    best = _merged(mask_of(numa_nodes), lists)
    return NumaChoice(best, best.preferred or policy == BEST_EFFORT)


def mask_of(numa_nodes: Sequence[int]) -> int:
    return sum(1 << n for n in numa_nodes)


def nodes_in(mask: int, numa_nodes: Sequence[int]) -> list[int]:
    """The NUMA nodes whose bit is set."""
    return [n for n in numa_nodes if mask >> n & 1]


def _subsets(numa_nodes: Sequence[int]) -> Iterator[tuple[int, ...]]:
    for size in range(1, len(numa_nodes) + 1):
        yield from combinations(numa_nodes, size)


def _lists(providers: Sequence[dict[str, list[Hint] | None]]) -> Iterator[list[Hint]]:
    for hints in providers:
        if not hints:
            yield [Hint(None, True)]
        for of_resource in hints.values():
            if of_resource is None:
                yield [Hint(None, True)]
            else:
                yield of_resource or [Hint(None, False)]


def _merged(all_nodes: int, lists: Sequence[list[Hint]]) -> Hint:
    """The best of all combinations: preferred ones first, then the fewest NUMA nodes, then the lowest."""
    best = Hint(all_nodes, False)
    for hints in product(*lists):
        mask = all_nodes
        for hint in hints:
            mask &= all_nodes if hint.mask is None else hint.mask
        merged = Hint(mask, all(h.preferred for h in hints))
        if mask and _order(merged) < _order(best):
            best = merged
    return best


def _order(hint: Hint) -> tuple[bool, int, int]:
    mask = hint.mask or 0
    return (not hint.preferred, mask.bit_count(), mask)
