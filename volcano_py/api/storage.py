"""Volumes and their drivers, as far as the scheduler uses them."""

from __future__ import annotations

from msgspec import field

from volcano_py.api.affinity import NodeSelector
from volcano_py.api.core import (
    AWSElasticBlockStoreVolumeSource,
    CSIVolumeSource,
    GCEPersistentDiskVolumeSource,
    InTreeVolumeSource,
    ResourceList,
    ResourceRequirements,
)
from volcano_py.api.meta import ApiObject, ApiType, LabelSelector, ObjectReference
from volcano_py.api.quantity import Quantity

SELECTED_NODE = "volume.kubernetes.io/selected-node"
"""Annotation of a claim that waits for its first consumer: the node near which to provision a volume."""
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
"""Both are written by the component that binds claim and volume."""
NO_PROVISIONER = "kubernetes.io/no-provisioner"
"""The provisioner of classes whose volumes are created manually, such as local disks."""
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"


class PersistentVolumeClaimSpec(ApiType):
    access_modes: list[str] | None = None
    selector: LabelSelector | None = None
    resources: ResourceRequirements = field(default_factory=ResourceRequirements)
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str | None = None


class PersistentVolumeClaimStatus(ApiType):
    phase: str = ""
    capacity: ResourceList | None = None


class PersistentVolumeClaim(ApiObject):
    api_version: str = "v1"
    kind: str = "PersistentVolumeClaim"
    spec: PersistentVolumeClaimSpec = field(default_factory=PersistentVolumeClaimSpec)
    status: PersistentVolumeClaimStatus = field(default_factory=PersistentVolumeClaimStatus)


class VolumeNodeAffinity(ApiType):
    required: NodeSelector | None = None


class PersistentVolumeSpec(ApiType):
    capacity: ResourceList | None = None
    access_modes: list[str] | None = None
    claim_ref: ObjectReference | None = None
    storage_class_name: str = ""
    volume_mode: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    csi: CSIVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    azure_disk: InTreeVolumeSource | None = None
    cinder: InTreeVolumeSource | None = None
    vsphere_volume: InTreeVolumeSource | None = None
    portworx_volume: InTreeVolumeSource | None = None


class PersistentVolumeStatus(ApiType):
    phase: str = ""


class PersistentVolume(ApiObject):
    api_version: str = "v1"
    kind: str = "PersistentVolume"
    spec: PersistentVolumeSpec = field(default_factory=PersistentVolumeSpec)
    status: PersistentVolumeStatus = field(default_factory=PersistentVolumeStatus)


class TopologySelectorLabelRequirement(ApiType):
    key: str = ""
    values: list[str] | None = None


class TopologySelectorTerm(ApiType):
    match_label_expressions: list[TopologySelectorLabelRequirement] | None = None


class StorageClass(ApiObject):
    api_version: str = "storage.k8s.io/v1"
    kind: str = "StorageClass"
    provisioner: str = ""
    parameters: dict[str, str] | None = None
    reclaim_policy: str | None = None
    volume_binding_mode: str | None = None
    """`Immediate` (also when unset) or `WaitForFirstConsumer`."""
    allowed_topologies: list[TopologySelectorTerm] | None = None


class VolumeNodeResources(ApiType):
    count: int | None = None


class CSINodeDriver(ApiType):
    name: str = ""
    node_id: str = field(default="", name="nodeID")
    topology_keys: list[str] | None = None
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(ApiType):
    drivers: list[CSINodeDriver] | None = None


class CSIDriverSpec(ApiType):
    attach_required: bool | None = None
    storage_capacity: bool | None = None


class CSIDriver(ApiObject):
    api_version: str = "storage.k8s.io/v1"
    kind: str = "CSIDriver"
    spec: CSIDriverSpec = field(default_factory=CSIDriverSpec)


class CSIStorageCapacity(ApiObject):
    api_version: str = "storage.k8s.io/v1"
    kind: str = "CSIStorageCapacity"
    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None


class VolumeAttachmentSource(ApiType):
    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(ApiType):
    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = field(default_factory=VolumeAttachmentSource)


class VolumeAttachment(ApiObject):
    api_version: str = "storage.k8s.io/v1"
    kind: str = "VolumeAttachment"
    spec: VolumeAttachmentSpec = field(default_factory=VolumeAttachmentSpec)


class CSINode(ApiObject):
    api_version: str = "storage.k8s.io/v1"
    kind: str = "CSINode"
    spec: CSINodeSpec = field(default_factory=CSINodeSpec)
