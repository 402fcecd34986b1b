"""Volumes of Kubernetes' former built-in plugins as volumes of CSI drivers."""

from __future__ import annotations

from typing import Any

import pytest

from volcano_py.api.codec import from_manifest
from volcano_py.api.core import Pod
from volcano_py.api.storage import PersistentVolume
from volcano_py.scheduler.model.claims.csi_migration import csi_affinity, csi_source, csi_source_of

ZONE, OLD_ZONE = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"


def volume(spec: dict[str, Any], labels: dict[str, str] | None = None) -> PersistentVolume:
    found: PersistentVolume = from_manifest(
        PersistentVolume, {"metadata": {"name": "pv", "labels": labels or {}}, "spec": spec}
    )
    return found


@pytest.mark.parametrize(
    ("spec", "labels", "source"),
    [
        ({"awsElasticBlockStore": {"volumeID": "aws://z/vol-1"}}, {}, ("ebs.csi.aws.com", "vol-1")),
        (
            {"gcePersistentDisk": {"pdName": "d"}},
            {ZONE: "us-a"},
            ("pd.csi.storage.gke.io", "projects/UNSPECIFIED/zones/us-a/disks/d"),
        ),
        (
            {"gcePersistentDisk": {"pdName": "d"}},
            {OLD_ZONE: "us-a__us-b"},
            ("pd.csi.storage.gke.io", "projects/UNSPECIFIED/regions/us/disks/d"),
        ),
        ({"azureDisk": {"diskName": "d", "diskURI": "/disks/d"}}, {}, ("disk.csi.azure.com", "/disks/d")),
        ({"cinder": {"volumeID": "c"}}, {}, ("cinder.csi.openstack.org", "c")),
        ({"vsphereVolume": {"volumePath": "[a] b"}}, {}, ("csi.vsphere.vmware.com", "[a] b")),
        ({"portworxVolume": {"volumeID": "p"}}, {}, ("pxd.portworx.com", "p")),
        ({"hostPath": {"path": "/"}}, {}, None),
        ({"csi": {"driver": "d", "volumeHandle": "h"}}, {}, None),
    ],
)
def test_driver_and_handle(spec: dict[str, Any], labels: dict[str, str], source: tuple[str, str] | None) -> None:
    assert csi_source_of(volume(spec, labels)) == source
    if not labels and "csi" not in spec:
        pod: Pod = from_manifest(Pod, {"metadata": {"name": "p"}, "spec": {"volumes": [{"name": "v", **spec}]}})
        assert csi_source((pod.spec.volumes or [])[0]) == source


def affinity(*expressions: tuple[str, list[str]]) -> dict[str, Any]:
    rows = [{"key": key, "operator": "In", "values": values} for key, values in expressions]
    return {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": rows}]}}}


@pytest.mark.parametrize(
    ("own", "labels", "expected"),
    [
        (affinity((ZONE, ["a"])), {}, [("topology.ebs.csi.aws.com/zone", ["a"])]),
        (
            affinity((OLD_ZONE, ["a"]), ("failure-domain.beta.kubernetes.io/region", ["r"])),
            {},
            [("topology.ebs.csi.aws.com/zone", ["a"]), ("topology.kubernetes.io/region", ["r"])],
        ),
        ({}, {ZONE: "b__a"}, [("topology.ebs.csi.aws.com/zone", ["a", "b"])]),
        (affinity(("disk", ["x"])), {ZONE: "a"}, [("disk", ["x"]), ("topology.ebs.csi.aws.com/zone", ["a"])]),
        ({}, {}, None),
    ],
)
def test_zones(own: dict[str, Any], labels: dict[str, str], expected: list[tuple[str, list[str]]] | None) -> None:
    found = csi_affinity(volume({"awsElasticBlockStore": {"volumeID": "v"}, **own}, labels))
    if expected is None:
        assert found is None
        return
    assert found is not None
    (term,) = found.node_selector_terms or ()
    assert [(r.key, r.values) for r in term.match_expressions or ()] == expected


def test_other_volumes_keep_their_affinity() -> None:
    other = volume({"csi": {"driver": "d", "volumeHandle": "h"}, **affinity((ZONE, ["a"]))}, {ZONE: "a"})
    assert csi_affinity(other) is other.spec.node_affinity.required  # type: ignore[union-attr]
