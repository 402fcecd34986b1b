"""Volumes and their drivers, as far as the scheduler reads them."""

from __future__ import annotations

from msgspec import field

from volcano_py.api.core import CSIVolumeSource, NodeSelector, ResourceList, ResourceRequirements
from volcano_py.api.meta import ApiObject, ApiType, LabelSelector, ObjectReference


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


class CSINode(ApiObject):
    api_version: str = "storage.k8s.io/v1"
    kind: str = "CSINode"
    spec: CSINodeSpec = field(default_factory=CSINodeSpec)
