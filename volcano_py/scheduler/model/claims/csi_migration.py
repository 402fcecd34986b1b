"""Volumes of Kubernetes' former built-in plugins, as volumes of the CSI drivers that serve them now. Kubernetes:
csi-translation-lib.

The migration of these plugins is complete and always on: limits of nodes and zones are those of the CSI driver. On a
node without a CSINode, the volume is used as it is.
"""

from __future__ import annotations

import msgspec

from volcano_py.api import core, storage
from volcano_py.api.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm

DRIVERS = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/vsphere-volume": "csi.vsphere.vmware.com",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
}
"""The CSI driver of each former plugin, by its name as a provisioner."""
_ZONES = {
    "ebs.csi.aws.com": "topology.ebs.csi.aws.com/zone",
    "pd.csi.storage.gke.io": "topology.gke.io/zone",
    "disk.csi.azure.com": "topology.disk.csi.azure.com/zone",
    "cinder.csi.openstack.org": "topology.cinder.csi.openstack.org/zone",
    "csi.vsphere.vmware.com": "topology.csi.vmware.com/zone",
}
"""The node label with the zone, of each driver that sets one."""
_UNKNOWN = "UNSPECIFIED"
_STABLE = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")
_BETA = ("failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region")


def csi_source(of: core.Volume | storage.PersistentVolumeSpec, zone: str = "") -> tuple[str, str] | None:
    """The CSI driver and handle of a former plugin's volume; None for any other volume. `zone`: of the volume."""
    plugin, handle = "", ""
    if of.aws_elastic_block_store is not None:
        plugin, handle = "kubernetes.io/aws-ebs", of.aws_elastic_block_store.volume_id.rpartition("/")[2]
    elif of.gce_persistent_disk is not None:
        place = f"regions/{zone.split('__')[0].rpartition('-')[0]}" if "__" in zone else f"zones/{zone or _UNKNOWN}"
        plugin = "kubernetes.io/gce-pd"
        handle = f"projects/{_UNKNOWN}/{place}/disks/{of.gce_persistent_disk.pd_name}"
    elif of.azure_disk is not None:
        plugin, handle = "kubernetes.io/azure-disk", of.azure_disk.disk_uri
    elif of.cinder is not None:
        plugin, handle = "kubernetes.io/cinder", of.cinder.volume_id
    elif of.vsphere_volume is not None:
        plugin, handle = "kubernetes.io/vsphere-volume", of.vsphere_volume.volume_path
    elif of.portworx_volume is not None:
        plugin, handle = "kubernetes.io/portworx-volume", of.portworx_volume.volume_id
    return (DRIVERS[plugin], handle) if plugin else None


def csi_source_of(volume: storage.PersistentVolume) -> tuple[str, str] | None:
    """As `csi_source`, of a PersistentVolume."""
    labels = volume.metadata.labels or {}
    return csi_source(volume.spec, labels.get(_STABLE[0]) or labels.get(_BETA[0], ""))


def csi_affinity(volume: storage.PersistentVolume) -> NodeSelector | None:
    """The nodes that can use a former plugin's volume: its zones are values of the label that the CSI driver sets."""
    required = volume.spec.node_affinity.required if volume.spec.node_affinity is not None else None
    source = csi_source_of(volume)
    label = _ZONES.get(source[0]) if source is not None else None
    if label is None:
        return required
    terms = list((required.node_selector_terms if required is not None else None) or ())
    labels = volume.metadata.labels or {}
    zone, region = _names(terms, labels)
    if any(r.key == zone for t in terms for r in t.match_expressions or ()):
        terms = [_renamed(term, zone, label) for term in terms]
    elif zones := [z.strip() for z in labels.get(zone, "").split("__") if z.strip()]:
        more = NodeSelectorRequirement(key=label, operator="In", values=sorted(set(zones)))
        terms = [
            msgspec.structs.replace(term, match_expressions=[*(term.match_expressions or ()), more])
            for term in terms or [NodeSelectorTerm()]
        ]
    if region == _BETA[1]:
        terms = [_renamed(term, region, _STABLE[1]) for term in terms]
    return NodeSelector(node_selector_terms=terms) if terms else required


def _names(terms: list[NodeSelectorTerm], labels: dict[str, str]) -> tuple[str, str]:
    """The labels with which a volume names its zone and region."""
    used = {r.key for term in terms for r in term.match_expressions or ()}
    if _STABLE[0] in used:
        return _STABLE
    if _BETA[0] in used:
        return _BETA
    return _BETA if _STABLE[0] not in labels and _BETA[0] in labels else _STABLE


def _renamed(term: NodeSelectorTerm, old: str, new: str) -> NodeSelectorTerm:
    expressions = [msgspec.structs.replace(r, key=new) if r.key == old else r for r in term.match_expressions or ()]
    return msgspec.structs.replace(term, match_expressions=expressions)
