"""The nodes that a NodeSelector matches, as an array; kept until nodes change. kube-scheduler: package nodeaffinity."""

from __future__ import annotations

import msgspec
import numpy as np

from volcano_py.api.affinity import NodeSelector, NodeSelectorTerm
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.nodes.node_table import arrays_kept, drop_oldest
from volcano_py.scheduler.model.nodes.node_terms import term_matches
from volcano_py.scheduler.rules.arrays import Bools

_encoder = msgspec.msgpack.Encoder()


def node_mask(cluster: Cluster, selector: NodeSelector) -> Bools:
    """The nodes that match one of the selector's terms. The array is read-only."""
    cache = cluster.rule_cache()
    known: dict[bytes, Bools] = cache.setdefault(("node masks", 0), {})
    key = _encoder.encode(selector)
    mask = known.get(key)
    if mask is None:
        drop_oldest(known, arrays_kept(len(cluster.nodes)))
        mask = known[key] = np.zeros(len(cluster.nodes), dtype=bool)
        for term in selector.node_selector_terms or ():
            _match(cluster, term, mask)
    return mask


def _match(cluster: Cluster, term: NodeSelectorTerm, mask: Bools) -> None:
    nodes = cluster.nodes.objects
    expressions = term.match_expressions or ()
    named = next((e for e in expressions if e.operator == "In"), None)
    if named is not None:
        by_value = _label_index(cluster, named.key)
        candidates = [i for value in named.values or () for i in by_value.get(value, ())]
    else:
        fields = [f for f in term.match_fields or () if f.key == "metadata.name" and f.operator == "In"]
        index = cluster.nodes.index
        known = [index[v] for f in fields for v in f.values or () if v in index]
        candidates = known if fields else list(range(len(nodes)))
    for i in candidates:
        if not mask[i]:
            mask[i] = term_matches(term, nodes[i])


def _label_index(cluster: Cluster, key: str) -> dict[str, list[int]]:
    """The columns of nodes by the value of a label."""
    cache = cluster.rule_cache()
    found: dict[str, list[int]] | None = cache.get((f"label index {key}", 0))
    if found is None:
        found = cache[f"label index {key}", 0] = {}
        for i, node in enumerate(cluster.nodes.objects):
            value = (node.metadata.labels or {}).get(key)
            if value is not None:
                found.setdefault(value, []).append(i)
    return found
