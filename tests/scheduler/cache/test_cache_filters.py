"""The objects that this scheduler is responsible for."""

import zlib

import pytest

from volcano_py.api.core import Node, Pod
from volcano_py.api.meta import ObjectMeta, OwnerReference
from volcano_py.api.scheduling import PodGroup
from volcano_py.scheduler.cache.filters import ObjectFilters, parse_node_selector
from volcano_py.scheduler.cache.ring import Ring, from_environment


def pod(name="p", scheduler="volcano", node="", owner=None):
    made = Pod(metadata=ObjectMeta(name=name, namespace="ns"))
    made.spec.scheduler_name, made.spec.node_name = scheduler, node
    made.metadata.owner_references = [OwnerReference(name=owner)] if owner else None
    return made


@pytest.mark.parametrize(
    ("scheduler", "node", "ours"),
    [
        ("volcano", "", True),
        ("volcano", "n1", True),
        ("second", "", True),
        ("default-scheduler", "", False),
        ("default-scheduler", "n1", True),
    ],
)
def test_pods_of_this_scheduler_and_all_bound_pods(scheduler, node, ours):
    filters = ObjectFilters(["volcano", "second"])
    assert filters.accepts("Pod", pod(scheduler=scheduler, node=node)) is ours


def test_every_other_kind_is_accepted():
    assert ObjectFilters(["volcano"]).accepts("Service", object())


def test_a_ring_splits_everything_among_its_members():
    names = ["s-0", "s-1", "s-2"]
    ring = Ring(names)
    filters = [ObjectFilters(["volcano"], (ring, name)) for name in names]
    for i in range(200):
        for kind, obj in (
            ("Pod", pod(f"p{i}")),
            ("Pod", pod("p", owner=f"job-{i}")),
            ("PodGroup", PodGroup(metadata=ObjectMeta(name=f"g{i}"))),
            ("Node", Node(metadata=ObjectMeta(name=f"n{i}"))),
        ):
            assert sum(f.accepts(kind, obj) for f in filters) == 1
    shares = [sum(ring.owner(f"key-{i}") == name for i in range(3000)) for name in names]
    assert min(shares) > 300


def test_a_group_and_its_pods_go_to_the_same_member():
    ring = Ring(["s-0", "s-1", "s-2"])
    group = PodGroup(metadata=ObjectMeta(name="g", owner_references=[OwnerReference(name="job-7")]))
    for name in ("s-0", "s-1", "s-2"):
        filters = ObjectFilters(["volcano"], (ring, name))
        assert filters.accepts("PodGroup", group) is filters.accepts("Pod", pod(owner="job-7"))


def test_the_ring_equals_volcanos_library():
    # By its definition: 20 points per member at CRC-32 of index and name, the first point strictly above the
    # key's.
    members = ["volcano-0", "volcano-1"]
    points = sorted((zlib.crc32(f"{i}{m}".encode()), m) for m in members for i in range(20))
    for key in (f"pod-{i}" for i in range(100)):
        above = [m for h, m in points if h > zlib.crc32(key.encode())]
        assert Ring(members).owner(key) == (above[0] if above else points[0][1])


def test_the_ring_of_the_environment():
    assert from_environment({}) is None
    on = {"MULTI_SCHEDULER_ENABLE": "true", "SCHEDULER_POD_NAME": "volcano-1", "SCHEDULER_NUM": "3"}
    ring, mine = from_environment(on)
    assert mine == "volcano-1"
    assert {ring.owner(str(i)) for i in range(300)} == {"volcano-0", "volcano-1", "volcano-2"}
    ring, _ = from_environment({**on, "SCHEDULER_NUM": "many"})
    assert {ring.owner(str(i)) for i in range(300)} == {"volcano-0"}


def test_nodes_with_any_of_the_labels():
    filters = ObjectFilters(["volcano"], node_labels=parse_node_selector([" pool : batch ", "zone:a", "bad", "empty:"]))
    for labels, taken in (
        ({"pool": "batch"}, True),
        ({"zone": "a", "x": "y"}, True),
        ({"pool": "web"}, False),
    ):
        assert filters.accepts("Node", Node(metadata=ObjectMeta(name="n", labels=labels))) is taken
    assert not filters.accepts("Node", Node(metadata=ObjectMeta(name="n")))
    assert parse_node_selector(["bad", "empty:"]) == []
