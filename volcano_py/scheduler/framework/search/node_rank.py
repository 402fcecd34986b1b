"""The order of nodes by score, and by a fixed rank where scores are equal. Volcano chooses at random among equal nodes,
and evaluates nodes in the order of the list."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.model.cluster import Cluster


def rank(cluster: Cluster, seed: int) -> NDArray[np.int64]:
    """The rank of every node among nodes of equal score: a hash of seed and name."""
    salt = seed.to_bytes(16, "little", signed=True)

    def hashes() -> NDArray[np.int64]:
        digests = (blake2b(name.encode(), digest_size=8, key=salt).digest() for name in cluster.nodes.names)
        return np.array([int.from_bytes(digest, "little", signed=True) for digest in digests], dtype=np.int64)

    return cluster.derived("rank", (cluster.nodes.names_generation, seed), hashes)


def by_name(cluster: Cluster) -> NDArray[np.intp]:
    """The columns of all nodes in the order of their names, in which an API server lists them."""
    nodes = cluster.nodes
    return cluster.derived(
        "by name", nodes.names_generation, lambda: np.argsort(np.array(nodes.names, dtype=np.str_), kind="stable")
    )


def best_columns(scores: NDArray[np.float64], rank: NDArray[np.int64], count: int) -> NDArray[np.intp]:
    """The columns of the `count` best nodes by score and rank, in no order; −inf: not among them."""
    open_ = np.flatnonzero(scores > -np.inf)
    if len(open_) <= count:
        return open_
    known = scores[open_]
    least = np.partition(known, len(open_) - count)[len(open_) - count]
    above, equal = open_[known > least], open_[known == least]
    left = count - len(above)
    if len(equal) > left:
        equal = equal[np.argpartition(rank[equal], left - 1)[:left]]
    return np.concatenate((above, equal))
