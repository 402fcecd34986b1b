"""Labels of nodes as columns: the topology domain of each node."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.model.cluster import Cluster


class Domains:
    """The values of one topology key: `codes[node]` is a domain's number, −1 where the label is missing."""

    __slots__ = ("_alone", "_has", "codes", "size")

    def __init__(self, codes: NDArray[np.intp], size: int) -> None:
        self.codes = codes
        self.size = size
        self._has: NDArray[np.bool_] = codes >= 0
        self._alone = size == int(self._has.sum())
        """Whether each node is in a domain of its own, as with the host name."""

    def sums(self, per_node: NDArray[np.int64]) -> NDArray[np.int64]:
        """Per domain, the sum over its nodes."""
        has = self._has
        return np.bincount(self.codes[has], weights=per_node[has], minlength=self.size).astype(np.int64)

    def at_nodes(self, per_domain: NDArray[np.int64]) -> NDArray[np.int64]:
        """Per node, its domain's value; 0 where the label is missing."""
        if not self.size:
            return np.zeros(len(self.codes), dtype=np.int64)
        return np.where(self._has, per_domain[self.codes], 0)

    def around(self, per_node: NDArray[np.int64]) -> NDArray[np.int64]:
        """Per node, the sum over the nodes of its domain; 0 where the label is missing."""
        return np.where(self._has, per_node, 0) if self._alone else self.at_nodes(self.sums(per_node))


def domains(cluster: Cluster, key: str) -> Domains:
    """The domains of a topology key over all nodes."""
    cache = cluster.rule_cache()
    known = cache.get(("domains:" + key, 0))
    if known is None:
        numbers: dict[str, int] = {}
        codes = np.full(len(cluster.nodes), -1, dtype=np.intp)
        for i, node in enumerate(cluster.nodes.objects):
            value = (node.metadata.labels or {}).get(key)
            if value is not None:
                codes[i] = numbers.setdefault(value, len(numbers))
        known = cache["domains:" + key, 0] = Domains(codes, len(numbers))
    found: Domains = known
    return found
