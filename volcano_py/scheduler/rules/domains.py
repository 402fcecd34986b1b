"""Topology domains: the values of a label over the nodes."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.rules.arrays import Indices, Ints


class Domains:
    """The domains of one topology key. `codes[node]`: a domain's number in `values`, −1 where the label is missing."""

    def __init__(self, codes: Indices, values: list[str]) -> None:
        self.codes = codes
        self.values = values
        self.size = len(values)
        self.has = codes >= 0
        """The nodes that have the label."""
        self._alone = self.size == int(self.has.sum())
        """Whether each node is in a domain of its own, as with the host name."""

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each value."""
        return {value: number for number, value in enumerate(self.values)}

    @cached_property
    def with_empty(self) -> Domains:
        """The domains where a missing label counts as an empty value."""
        if self.has.all():
            return self
        empty = self.numbers.get("", self.size)
        values = self.values if empty < self.size else [*self.values, ""]
        return Domains(np.where(self.has, self.codes, empty), values)

    def in_order(self, nodes: Indices) -> Domains:
        """The domains of these nodes, in this order."""
        return Domains(self.codes[nodes], self.values)

    def sums(self, per_node: Ints) -> Ints:
        """Per domain, the sum over its nodes."""
        has = self.has
        return np.bincount(self.codes[has], weights=per_node[has], minlength=self.size).astype(np.int64)

    def at_nodes(self, per_domain: Ints) -> Ints:
        """Per node, its domain's value; 0 where the label is missing."""
        if not self.size:
            return np.zeros(len(self.codes), dtype=np.int64)
        return np.where(self.has, per_domain[self.codes], 0)

    def around(self, per_node: Ints) -> Ints:
        """Per node, the sum over the nodes of its domain; 0 where the label is missing."""
        return np.where(self.has, per_node, 0) if self._alone else self.at_nodes(self.sums(per_node))


def domains(cluster: Cluster, key: str) -> Domains:
    """The domains of a topology key over all nodes, kept until nodes change."""
    cache = cluster.rule_cache()
    known = cache.get(("domains:" + key, 0))
    if known is None:
        numbers: dict[str, int] = {}
        codes = np.full(len(cluster.nodes), -1, dtype=np.intp)
        for i, node in enumerate(cluster.nodes.objects):
            value = (node.metadata.labels or {}).get(key)
            if value is not None:
                codes[i] = numbers.setdefault(value, len(numbers))
        known = cache["domains:" + key, 0] = Domains(codes, list(numbers))
    found: Domains = known
    return found
