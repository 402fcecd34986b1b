"""Fixed places of nodes, where scores say nothing. Volcano throws dice among equals, and walks nodes as listed."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.model.cluster import Cluster


def rank(cluster: Cluster, seed: int) -> NDArray[np.int64]:
    """A fixed place for every node among nodes of equal score: a hash of seed and name."""
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


def by_name(cluster: Cluster) -> NDArray[np.int64]:
    """Every node's place in the order of names, in which an API server lists them."""
    cache = cluster.rule_cache()
    key = ("by name", 0)
    if key not in cache:
        places = np.empty(len(cluster.nodes.names), dtype=np.int64)
        places[np.argsort(np.array(cluster.nodes.names, dtype=np.str_), kind="stable")] = np.arange(len(places))
        cache[key] = places
    found: NDArray[np.int64] = cache[key]
    return found
