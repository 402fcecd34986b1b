"""Kubernetes' own kinds, as far as the scheduler, the controllers and the hollow kubelet read them.

These structs are for reading: fields that volcano_py does not need are skipped while decoding, which keeps a 5 KB pod
at a few microseconds. Do not write them back; write patches, or use the plain JSON.
`PodSpec.affinity` and `topology_spread_constraints` stay raw JSON until they are decoded
(module `affinity`), because most cycles do not need them. A raw field keeps the whole message
that contains it in memory; `detach` copies it, for objects that are kept from a long list.
"""

from __future__ import annotations

from typing import Any

from msgspec import Raw, field

from volcano_py.api.meta import ApiObject, ApiType, Condition, LabelSelector
from volcano_py.api.quantity import Quantity

NO_RAW = Raw()
"""An absent raw field; it is falsy."""

ResourceList = dict[str, Quantity]
"""Resource name to quantity; read with `volcano_py.api.quantity`."""


class ResourceClaimUse(ApiType):
    name: str = ""
    request: str = ""


class ResourceRequirements(ApiType):
    requests: ResourceList | None = None
    limits: ResourceList | None = None
    claims: list[ResourceClaimUse] | None = None


class ContainerPort(ApiType):
    name: str = ""
    container_port: int = 0
    host_port: int = 0
    protocol: str = "TCP"
    host_ip: str = field(default="", name="hostIP")


class EnvVar(ApiType):
    name: str = ""
    value: str = ""


class Container(ApiType):
    name: str = ""
    image: str = ""
    command: list[str] | None = None
    args: list[str] | None = None
    env: list[EnvVar] | None = None
    ports: list[ContainerPort] | None = None
    resources: ResourceRequirements = field(default_factory=ResourceRequirements)
    restart_policy: str | None = None
    """`Always` makes an init container a sidecar."""


class Toleration(ApiType):
    key: str = ""
    operator: str = ""
    """`Exists`, `Equal` (also when empty), `Lt`, `Gt`."""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class PodSchedulingGate(ApiType):
    name: str = ""


class PodResourceClaim(ApiType):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSchedulingGroup(ApiType):
    pod_group_name: str = ""
    """A PodGroup of scheduling.k8s.io in the pod's namespace."""


class PersistentVolumeClaimVolumeSource(ApiType):
    claim_name: str = ""
    read_only: bool = False


class EphemeralVolumeSource(ApiType):
    volume_claim_template: Any = None


class ConfigMapVolumeSource(ApiType):
    name: str = ""
    optional: bool | None = None


class SecretVolumeSource(ApiType):
    secret_name: str = ""
    optional: bool | None = None


class CSIVolumeSource(ApiType):
    driver: str = ""
    volume_handle: str = ""


class GCEPersistentDiskVolumeSource(ApiType):
    pd_name: str = ""
    read_only: bool = False


class AWSElasticBlockStoreVolumeSource(ApiType):
    volume_id: str = field(default="", name="volumeID")
    read_only: bool = False


class InTreeVolumeSource(ApiType):
    """Disks of Azure, Cinder, vSphere and Portworx: each has one of the fields."""

    volume_id: str = field(default="", name="volumeID")
    disk_uri: str = field(default="", name="diskURI")
    volume_path: str = ""


class RBDVolumeSource(ApiType):
    monitors: list[str] | None = None
    pool: str = "rbd"
    image: str = ""
    read_only: bool = False


class ISCSIVolumeSource(ApiType):
    iqn: str = ""
    read_only: bool = False


class ImageVolumeSource(ApiType):
    reference: str = ""


class Volume(ApiType):
    name: str = ""
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    config_map: ConfigMapVolumeSource | None = None
    secret: SecretVolumeSource | None = None
    csi: CSIVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    azure_disk: InTreeVolumeSource | None = None
    cinder: InTreeVolumeSource | None = None
    vsphere_volume: InTreeVolumeSource | None = None
    portworx_volume: InTreeVolumeSource | None = None
    rbd: RBDVolumeSource | None = None
    iscsi: ISCSIVolumeSource | None = None
    image: ImageVolumeSource | None = None


class PodSpec(ApiType):
    scheduler_name: str = ""
    node_name: str = ""
    node_selector: dict[str, str] | None = None
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    affinity: Raw = NO_RAW
    topology_spread_constraints: Raw = NO_RAW
    tolerations: list[Toleration] | None = None
    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    overhead: ResourceList | None = None
    resources: ResourceRequirements | None = None
    scheduling_gates: list[PodSchedulingGate] | None = None
    scheduling_group: PodSchedulingGroup | None = None
    volumes: list[Volume] | None = None
    resource_claims: list[PodResourceClaim] | None = None
    host_network: bool = False
    restart_policy: str = ""
    termination_grace_period_seconds: int | None = None
    active_deadline_seconds: int | None = None
    service_account_name: str = ""
    hostname: str = ""
    subdomain: str = ""
    runtime_class_name: str | None = None


class ContainerStateTerminated(ApiType):
    exit_code: int = 0
    reason: str = ""


class ContainerState(ApiType):
    waiting: Any = None
    running: Any = None
    terminated: ContainerStateTerminated | None = None


class ContainerStatus(ApiType):
    name: str = ""
    ready: bool = False
    restart_count: int = 0
    image: str = ""
    state: ContainerState | None = None
    last_state: ContainerState | None = None
    allocated_resources: ResourceList | None = None
    resources: ResourceRequirements | None = None


class PodResourceClaimStatus(ApiType):
    name: str = ""
    resource_claim_name: str | None = None


class PodStatus(ApiType):
    phase: str = ""
    conditions: list[Condition] | None = None
    nominated_node_name: str = ""
    start_time: str | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    resize: str = ""
    resource_claim_statuses: list[PodResourceClaimStatus] | None = None
    reason: str = ""
    message: str = ""
    qos_class: str = ""
    pod_ip: str = field(default="", name="podIP")
    host_ip: str = field(default="", name="hostIP")


class Pod(ApiObject):
    api_version: str = "v1"
    kind: str = "Pod"
    spec: PodSpec = field(default_factory=PodSpec)
    status: PodStatus = field(default_factory=PodStatus)


class Taint(ApiType):
    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class NodeSpec(ApiType):
    unschedulable: bool = False
    taints: list[Taint] | None = None
    provider_id: str = field(default="", name="providerID")


class ContainerImage(ApiType):
    names: list[str] | None = None
    size_bytes: int = 0


class AttachedVolume(ApiType):
    name: str = ""
    device_path: str = ""


class NodeStatus(ApiType):
    allocatable: ResourceList | None = None
    capacity: ResourceList | None = None
    conditions: list[Condition] | None = None
    images: list[ContainerImage] | None = None
    volumes_attached: list[AttachedVolume] | None = None
    declared_features: list[str] | None = None


class Node(ApiObject):
    api_version: str = "v1"
    kind: str = "Node"
    spec: NodeSpec = field(default_factory=NodeSpec)
    status: NodeStatus = field(default_factory=NodeStatus)


class NamespaceStatus(ApiType):
    phase: str = ""


class Namespace(ApiObject):
    api_version: str = "v1"
    kind: str = "Namespace"
    status: NamespaceStatus = field(default_factory=NamespaceStatus)


class ServiceSpec(ApiType):
    selector: dict[str, str] | None = None
    cluster_ip: str = field(default="", name="clusterIP")
    type: str = ""


class Service(ApiObject):
    api_version: str = "v1"
    kind: str = "Service"
    spec: ServiceSpec = field(default_factory=ServiceSpec)


class ResourceQuotaSpec(ApiType):
    hard: ResourceList | None = None
    scopes: list[str] | None = None


class ResourceQuotaStatus(ApiType):
    hard: ResourceList | None = None
    used: ResourceList | None = None


class ResourceQuota(ApiObject):
    api_version: str = "v1"
    kind: str = "ResourceQuota"
    spec: ResourceQuotaSpec = field(default_factory=ResourceQuotaSpec)
    status: ResourceQuotaStatus = field(default_factory=ResourceQuotaStatus)


class ConfigMap(ApiObject):
    api_version: str = "v1"
    kind: str = "ConfigMap"
    data: dict[str, str] | None = None


class PriorityClass(ApiObject):
    api_version: str = "scheduling.k8s.io/v1"
    kind: str = "PriorityClass"
    value: int = 0
    global_default: bool = False
    preemption_policy: str | None = None
    description: str = ""


class PodDisruptionBudgetSpec(ApiType):
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    selector: LabelSelector | None = None
    unhealthy_pod_eviction_policy: str | None = None


class PodDisruptionBudgetStatus(ApiType):
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    disrupted_pods: dict[str, str | None] | None = None
    observed_generation: int = 0


class PodDisruptionBudget(ApiObject):
    api_version: str = "policy/v1"
    kind: str = "PodDisruptionBudget"
    spec: PodDisruptionBudgetSpec = field(default_factory=PodDisruptionBudgetSpec)
    status: PodDisruptionBudgetStatus = field(default_factory=PodDisruptionBudgetStatus)


class WorkloadSpec(ApiType):
    """Fields that ReplicaSet, StatefulSet, ReplicationController and Deployment have in common."""

    replicas: int | None = None
    selector: LabelSelector | None = None
    pod_management_policy: str = ""
    """Of a StatefulSet: OrderedReady (the default) or Parallel."""


class ReplicaSet(ApiObject):
    api_version: str = "apps/v1"
    kind: str = "ReplicaSet"
    spec: WorkloadSpec = field(default_factory=WorkloadSpec)


class StatefulSetStatus(ApiType):
    update_revision: str = ""
    """The revision that pods are updated to; a pod's own is in the label `controller-revision-hash`."""


class StatefulSet(ApiObject):
    api_version: str = "apps/v1"
    kind: str = "StatefulSet"
    spec: WorkloadSpec = field(default_factory=WorkloadSpec)
    status: StatefulSetStatus = field(default_factory=StatefulSetStatus)


class ReplicationControllerSpec(ApiType):
    replicas: int | None = None
    selector: dict[str, str] | None = None


class ReplicationController(ApiObject):
    api_version: str = "v1"
    kind: str = "ReplicationController"
    spec: ReplicationControllerSpec = field(default_factory=ReplicationControllerSpec)


def detach(pod: Pod) -> Pod:
    """Copy the raw parts of `pod` in place, so that the original message can be freed."""
    spec = pod.spec
    if spec.affinity:
        spec.affinity = spec.affinity.copy()
    if spec.topology_spread_constraints:
        spec.topology_spread_constraints = spec.topology_spread_constraints.copy()
    return pod
