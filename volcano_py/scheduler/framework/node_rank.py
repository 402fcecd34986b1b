"""The order of nodes by score, and by a fixed rank where scores are equal. Volcano chooses at random among equal nodes,
and evaluates nodes in the order of the list."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.model.cluster import Cluster


def rank(cluster: Cluster, seed: int) -> NDArray[np.int64]:
    """The rank of every node among nodes of equal score: a hash of seed and name."""
    cache = cluster.rule_cache()
    key = ("rank", seed)
    if key not in cache:
        salt = seed.to_bytes(16, "little", signed=True)
        cache[key] = np.array(
            [
                int.from_bytes(blake2b(name.encode(), digest_size=8, key=salt).digest(), "little", signed=True)
                for name in cluster.nodes.names
            ],
            dtype=np.int64,
        )
    found: NDArray[np.int64] = cache[key]
    return found


def by_name(cluster: Cluster) -> NDArray[np.intp]:
    """The columns of all nodes in the order of their names, in which an API server lists them."""
    cache = cluster.rule_cache()
    key = ("by name", 0)
    if key not in cache:
        cache[key] = np.argsort(np.array(cluster.nodes.names, dtype=np.str_), kind="stable")
    found: NDArray[np.intp] = cache[key]
    return found


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
