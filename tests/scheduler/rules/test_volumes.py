"""The rules about volumes: zones, limits and disks to results."""

from __future__ import annotations

import pytest

from volcano_py.api.codec import from_manifest
from volcano_py.api.core import Node, Volume
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.rules.volumes.disks import shares_disk
from volcano_py.scheduler.rules.volumes.limits import exceeds
from volcano_py.scheduler.rules.volumes.zones import outside_zones

ZONE, OLD_ZONE = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
NODES = ({ZONE: "a", REGION: "r"}, {ZONE: "b", REGION: "r"}, {OLD_ZONE: "a"}, {REGION: "r"}, {})


@pytest.mark.parametrize(
    ("zones", "expected"),
    [
        ([], "00000"),
        ([(ZONE, {"a"})], "01110"),
        ([(ZONE, {"a", "b"})], "00110"),
        ([(OLD_ZONE, {"a"})], "01010"),  # a node may have the label that replaces it
        ([(ZONE, {"a"}), (REGION, {"s"})], "11110"),
        ([(REGION, {"r"})], "00100"),
    ],
)
def test_zones(zones: list[tuple[str, set[str]]], expected: str) -> None:
    cluster = Cluster()
    for i, labels in enumerate(NODES):
        cluster.upsert("Node", from_manifest(Node, {"metadata": {"name": f"n{i}", "labels": labels}}))
    assert "".join(str(int(outside)) for outside in outside_zones(cluster, zones)) == expected


@pytest.mark.parametrize(
    ("handles", "attached", "free", "expected"),
    [
        ([("d", "v", True)], [], {"d": 1}, False),
        ([("d", "v", True)], [], {"d": 0}, True),
        ([("d", "v", True)], [], {}, False),
        ([("d", "v", False)], [("d", "v")], {"d": 0}, False),  # another pod of the node uses it
        ([("d", "v", False)], [("e", "v")], {"d": 0}, True),
        ([("d", "v", True), ("d", "w", True)], [], {"d": 1}, True),
        ([("d", "v", True), ("d", "v", True)], [], {"d": 1}, False),
        ([("d", "v", True), ("e", "w", True)], [], {"d": 1, "e": 0}, True),
    ],
)
def test_limits(
    handles: list[tuple[str, str, bool]], attached: list[tuple[str, str]], free: dict[str, float], expected: bool
) -> None:
    assert exceeds(handles, attached, free) is expected


GCE, EBS = "gcePersistentDisk", "awsElasticBlockStore"
IMAGE = {"monitors": ["m1", "m2"], "pool": "p", "image": "i"}


@pytest.mark.parametrize(
    ("kind", "mine", "theirs", "expected"),
    [
        (GCE, {"pdName": "d"}, {"pdName": "d"}, True),
        (GCE, {"pdName": "d"}, {"pdName": "e"}, False),
        (GCE, {"pdName": "d", "readOnly": True}, {"pdName": "d"}, True),
        (GCE, {"pdName": "d", "readOnly": True}, {"pdName": "d", "readOnly": True}, False),
        (EBS, {"volumeID": "v", "readOnly": True}, {"volumeID": "v", "readOnly": True}, True),
        (EBS, {"volumeID": "v"}, {"volumeID": "w"}, False),
        ("iscsi", {"iqn": "q"}, {"iqn": "q"}, True),
        ("iscsi", {"iqn": "q", "readOnly": True}, {"iqn": "q", "readOnly": True}, False),
        ("rbd", IMAGE, IMAGE, True),
        ("rbd", IMAGE, {**IMAGE, "monitors": ["m2", "m3"]}, True),
        ("rbd", IMAGE, {**IMAGE, "monitors": ["m3"]}, False),
        ("rbd", IMAGE, {**IMAGE, "pool": "q"}, False),
        ("rbd", {**IMAGE, "readOnly": True}, {**IMAGE, "readOnly": True}, False),
        ("emptyDir", {}, {}, False),
    ],
)
def test_disks(kind: str, mine: dict[str, object], theirs: dict[str, object], expected: bool) -> None:
    one, other = (from_manifest(Volume, {"name": "v", kind: source}) for source in (mine, theirs))
    assert shares_disk([one], [other]) is expected
