"""Usable capacity, updated by events, equals that of a new model."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from volcano_py.api.codec import from_manifest
from volcano_py.api.core import Node, Pod
from volcano_py.scheduler.model.cluster import Cluster

TAINT = {"key": "k", "value": "v", "effect": "NoSchedule"}


def node(name: str, tainted: bool, cordoned: bool) -> Any:
    spec = {"taints": [TAINT] if tainted else [], "unschedulable": cordoned}
    have = {"cpu": "4", "memory": "4Gi", "pods": "10"}
    return from_manifest(Node, {"metadata": {"name": name}, "spec": spec, "status": {"allocatable": have}})


def pod(name: str, ours: bool, tolerant: bool, on: str) -> Any:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    spec = {"nodeName": on, "containers": [container]}
    if tolerant:
        spec["tolerations"] = [{"key": "k", "operator": "Exists"}]
    annotations = {"scheduling.k8s.io/group-name": "g"} if ours else {}
    metadata = {"name": name, "namespace": "n", "uid": name, "annotations": annotations}
    return from_manifest(Pod, {"metadata": metadata, "spec": spec, "status": {"phase": "Running"}})


_names = st.sampled_from(("a", "b", "c"))
_events = st.one_of(
    st.tuples(st.just("Node"), _names, st.booleans(), st.booleans()),
    st.tuples(st.just("Pod"), st.sampled_from(("p", "q", "r")), st.booleans(), st.booleans(), _names),
    st.tuples(st.just("gone"), st.sampled_from(("Node", "Pod")), st.sampled_from(("a", "b", "p", "q"))),
)


@given(st.lists(_events, max_size=25))
def test_events_update_the_usable_capacity(events: list[tuple[Any, ...]]) -> None:
    cluster = Cluster()
    there: dict[tuple[str, str], Any] = {}
    for event in events:
        if event[0] == "gone":
            _, kind, name = event
            cluster.remove(kind, "n" if kind == "Pod" else "", name)
            there.pop((kind, name), None)
            continue
        kind, name, *rest = event
        made = node(name, *rest) if kind == "Node" else pod(name, *rest)
        cluster.upsert(kind, made)
        there[kind, name] = made
        assert cluster.usable.total().milli_cpu <= cluster.nodes.total().milli_cpu
    fresh = Cluster()
    for (kind, _), made in there.items():
        fresh.upsert(kind, made)
    assert cluster.usable.total() == fresh.usable.total()


def test_nodes_without_tolerating_pods_count_with_held_capacity() -> None:
    cluster = Cluster()
    cluster.upsert("Node", node("open", False, False))
    cluster.upsert("Node", node("tainted", True, False))
    cluster.upsert("Node", node("cordoned", False, True))
    cluster.upsert("Pod", pod("other", False, True, "open"))
    cluster.upsert("Pod", pod("mine", True, False, "cordoned"))
    assert cluster.usable.total().milli_cpu == 3000 + 1000
    cluster.upsert("Pod", pod("tolerant", True, True, ""))
    assert cluster.usable.total().milli_cpu == 3000 + 1000 + 4000
    cluster.remove("Pod", "n", "tolerant")
    assert cluster.usable.total().milli_cpu == 3000 + 1000
