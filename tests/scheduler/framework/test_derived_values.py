"""Values that are derived from the nodes, and kept while none of the fields changes that they depend on, equal those of
a new model."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from tests.scheduler.trial import configured
from volcano_py.api.codec import from_manifest
from volcano_py.api.core import Node
from volcano_py.scheduler.framework.begin_cycle import begin_cycle
from volcano_py.scheduler.framework.network.topology import ROOT
from volcano_py.scheduler.framework.search.node_rank import by_name, rank
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.rules.images import NodeImages
from volcano_py.scheduler.rules.taints import node_taints

CHANGES: dict[str, dict[str, Any]] = {
    "annotations": {"metadata": {"annotations": {"example.com/heartbeat": "1"}}},
    "labels": {"metadata": {"labels": {"zone": "x"}}},
    "taints": {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}},
    "unschedulable": {"spec": {"unschedulable": True}},
    "images": {"status": {"images": [{"names": ["busybox"], "sizeBytes": 5}]}},
}
CONF = configured([["gang"], ["predicates", "nodeorder", "proportion"]])


def node(name: str, *changed: str) -> Node:
    manifest: dict[str, Any] = {
        "metadata": {"name": name},
        "spec": {},
        "status": {"allocatable": {"cpu": "4", "memory": "4Gi", "pods": "10"}},
    }
    for change in changed:
        for part, fields in CHANGES[change].items():
            manifest[part] |= fields
    return from_manifest(Node, manifest)


def values(cluster: Cluster) -> dict[str, Any]:
    begin_cycle(cluster, CONF, 0.0)
    session = Session(cluster, CONF, 0.0, 7, lambda _: None)
    taints = node_taints(cluster)
    return {
        "columns": session.table.names,
        "rank": rank(cluster, 7).tolist(),
        "another rank": rank(cluster, 8).tolist(),
        "by name": by_name(cluster).tolist(),
        "closed": cluster.usable.closed_nodes(),
        "taints": [each([]).tolist() for each in (taints.cordoned, taints.repel, taints.disliked)],
        "images": session.of_nodes("ImageLocality", NodeImages),
        "nodes": session.topology.infos[ROOT].nodes,
    }


NAMES = st.sampled_from([f"n{i}" for i in range(4)])
EVENTS = st.lists(st.one_of(NAMES, st.tuples(NAMES, st.sets(st.sampled_from(sorted(CHANGES))))), max_size=12)


@given(EVENTS)
def test_values_equal_those_of_a_new_model(events: list[Any]) -> None:
    cluster = Cluster()
    for event in events:
        if isinstance(event, str):
            cluster.remove("Node", "", event)
        else:
            cluster.upsert("Node", node(event[0], *event[1]))
        new = Cluster()
        for each in cluster.nodes.objects:
            new.upsert("Node", each)
        assert values(cluster) == values(new)


def test_annotations_and_labels_derive_nothing_again() -> None:
    cluster = Cluster()
    for i in range(4):
        cluster.upsert("Node", node(f"n{i}"))
    before, taints = values(cluster), node_taints(cluster)
    with patch.object(cluster, "_derived", _NothingNew(cluster._derived)):
        closed = cluster.usable._closed
        cluster.upsert("Node", node("n1", "annotations"))
        cluster.upsert("Node", node("n2", "labels"))
        # The first rank has replaced the second one, which a session does not use.
        assert by_name(cluster).tolist() == before["by name"] and cluster.usable.closed_nodes() == before["closed"]
        assert cluster.usable._closed is closed
        assert cluster.nodes.name_set() is before["nodes"]
        begin_cycle(cluster, CONF, 0.0)
        session = Session(cluster, CONF, 0.0, 8, lambda _: None)
        assert session.topology.infos[ROOT].nodes is before["nodes"]
        assert node_taints(cluster) is taints


class _NothingNew(dict[str, Any]):
    def __setitem__(self, key: str, value: Any) -> None:
        raise AssertionError(f"{key} was derived again")
