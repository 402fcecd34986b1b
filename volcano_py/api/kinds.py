"""One table of the kinds known to us: where the API server serves them, and the struct that reads them."""

from __future__ import annotations

from msgspec import Struct

from volcano_py.api import (
    batch,
    bus,
    config,
    core,
    flow,
    nodeinfo,
    scheduling,
    shard,
    storage,
    topology,
)
from volcano_py.api.meta import ApiObject


class ResourceType(Struct, frozen=True, cache_hash=True, gc=False):
    """A resource of the API: group (empty for core), version, plural, kind."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()

    @property
    def api_version(self) -> str:
        """`group/version`, or the version alone for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """The URL path of the collection (no namespace: of all), of one object, or of its subresource."""
        path = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        if self.namespaced and namespace:
            path += f"/namespaces/{namespace}"
        path += f"/{self.plural}"
        if name:
            path += f"/{name}"
        if subresource:
            path += f"/{subresource}"
        return path


def _kind(api_version: str, plural: str, kind: str, *short_names: str, namespaced: bool = True) -> ResourceType:
    group, _, version = api_version.rpartition("/")
    return ResourceType(group, version, plural, kind, namespaced, short_names)


def _cluster(api_version: str, plural: str, kind: str, *short_names: str) -> ResourceType:
    return _kind(api_version, plural, kind, *short_names, namespaced=False)


# Volcano
JOB = _kind(batch.API_VERSION, "jobs", "Job", "vcjob", "vj")
CRONJOB = _kind(batch.API_VERSION, "cronjobs", "CronJob", "cronvcjob", "cronvj")
COMMAND = _kind(bus.API_VERSION, "commands", "Command")
PODGROUP = _kind(scheduling.API_VERSION, "podgroups", "PodGroup", "pg", "podgroup-v1beta1")
QUEUE = _cluster(scheduling.API_VERSION, "queues", "Queue", "q", "queue-v1beta1")
JOBFLOW = _kind(flow.API_VERSION, "jobflows", "JobFlow", "jf")
JOBTEMPLATE = _kind(flow.API_VERSION, "jobtemplates", "JobTemplate", "jt")
NUMATOPOLOGY = _cluster(nodeinfo.API_VERSION, "numatopologies", "Numatopology", "numatopo")
HYPERNODE = _cluster(topology.API_VERSION, "hypernodes", "HyperNode", "hn")
NODESHARD = _cluster(shard.API_VERSION, "nodeshards", "NodeShard", "nsh")
COLOCATIONCONFIGURATION = _kind(config.API_VERSION, "colocationconfigurations", "ColocationConfiguration")

# Kubernetes
NAMESPACE = _cluster("v1", "namespaces", "Namespace", "ns")
NODE = _cluster("v1", "nodes", "Node", "no")
POD = _kind("v1", "pods", "Pod", "po")
SERVICE = _kind("v1", "services", "Service", "svc")
CONFIGMAP = _kind("v1", "configmaps", "ConfigMap", "cm")
SECRET = _kind("v1", "secrets", "Secret")
SERVICEACCOUNT = _kind("v1", "serviceaccounts", "ServiceAccount", "sa")
EVENT = _kind("v1", "events", "Event", "ev")
PERSISTENTVOLUME = _cluster("v1", "persistentvolumes", "PersistentVolume", "pv")
PERSISTENTVOLUMECLAIM = _kind("v1", "persistentvolumeclaims", "PersistentVolumeClaim", "pvc")
RESOURCEQUOTA = _kind("v1", "resourcequotas", "ResourceQuota", "quota")
LIMITRANGE = _kind("v1", "limitranges", "LimitRange", "limits")
ENDPOINTS = _kind("v1", "endpoints", "Endpoints", "ep")
REPLICATIONCONTROLLER = _kind("v1", "replicationcontrollers", "ReplicationController", "rc")
DEPLOYMENT = _kind("apps/v1", "deployments", "Deployment", "deploy")
REPLICASET = _kind("apps/v1", "replicasets", "ReplicaSet", "rs")
STATEFULSET = _kind("apps/v1", "statefulsets", "StatefulSet", "sts")
DAEMONSET = _kind("apps/v1", "daemonsets", "DaemonSet", "ds")
BATCH_JOB = _kind("batch/v1", "jobs", "Job")
BATCH_CRONJOB = _kind("batch/v1", "cronjobs", "CronJob", "cj")
PODDISRUPTIONBUDGET = _kind("policy/v1", "poddisruptionbudgets", "PodDisruptionBudget", "pdb")
PRIORITYCLASS = _cluster("scheduling.k8s.io/v1", "priorityclasses", "PriorityClass", "pc")
LEASE = _kind("coordination.k8s.io/v1", "leases", "Lease")
STORAGECLASS = _cluster("storage.k8s.io/v1", "storageclasses", "StorageClass", "sc")
CSINODE = _cluster("storage.k8s.io/v1", "csinodes", "CSINode")
CSIDRIVER = _cluster("storage.k8s.io/v1", "csidrivers", "CSIDriver")
CSISTORAGECAPACITY = _kind("storage.k8s.io/v1", "csistoragecapacities", "CSIStorageCapacity")
VOLUMEATTACHMENT = _cluster("storage.k8s.io/v1", "volumeattachments", "VolumeAttachment")
NETWORKPOLICY = _kind("networking.k8s.io/v1", "networkpolicies", "NetworkPolicy", "netpol")
INGRESS = _kind("networking.k8s.io/v1", "ingresses", "Ingress", "ing")
ENDPOINTSLICE = _kind("discovery.k8s.io/v1", "endpointslices", "EndpointSlice")
ROLE = _kind("rbac.authorization.k8s.io/v1", "roles", "Role")
ROLEBINDING = _kind("rbac.authorization.k8s.io/v1", "rolebindings", "RoleBinding")
CLUSTERROLE = _cluster("rbac.authorization.k8s.io/v1", "clusterroles", "ClusterRole")
CLUSTERROLEBINDING = _cluster("rbac.authorization.k8s.io/v1", "clusterrolebindings", "ClusterRoleBinding")
RESOURCECLAIM = _kind("resource.k8s.io/v1", "resourceclaims", "ResourceClaim")
RESOURCECLAIMTEMPLATE = _kind("resource.k8s.io/v1", "resourceclaimtemplates", "ResourceClaimTemplate")
RESOURCESLICE = _cluster("resource.k8s.io/v1", "resourceslices", "ResourceSlice")
DEVICECLASS = _cluster("resource.k8s.io/v1", "deviceclasses", "DeviceClass")
CUSTOMRESOURCEDEFINITION = _cluster(
    "apiextensions.k8s.io/v1", "customresourcedefinitions", "CustomResourceDefinition", "crd", "crds"
)
APISERVICE = _cluster("apiregistration.k8s.io/v1", "apiservices", "APIService")
MUTATINGWEBHOOKCONFIGURATION = _cluster(
    "admissionregistration.k8s.io/v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration"
)
VALIDATINGWEBHOOKCONFIGURATION = _cluster(
    "admissionregistration.k8s.io/v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration"
)
VALIDATINGADMISSIONPOLICY = _cluster(
    "admissionregistration.k8s.io/v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy"
)
VALIDATINGADMISSIONPOLICYBINDING = _cluster(
    "admissionregistration.k8s.io/v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding"
)

ALL: tuple[ResourceType, ...] = tuple(
    resource_type for resource_type in list(globals().values()) if isinstance(resource_type, ResourceType)
)

VOLCANO: tuple[ResourceType, ...] = tuple(
    resource_type for resource_type in ALL if resource_type.group.endswith(".volcano.sh")
)
"""The kinds that our CRDs define."""

BY_KIND: dict[tuple[str, str], ResourceType] = {(rt.api_version, rt.kind): rt for rt in ALL}
"""(apiVersion, kind) of a manifest to its resource."""

BY_PLURAL: dict[tuple[str, str], ResourceType] = {(rt.api_version, rt.plural): rt for rt in ALL}
"""(apiVersion, plural) to its resource."""

STRUCTS: dict[ResourceType, type[ApiObject]] = {
    JOB: batch.Job,
    CRONJOB: batch.CronJob,
    COMMAND: bus.Command,
    PODGROUP: scheduling.PodGroup,
    QUEUE: scheduling.Queue,
    JOBFLOW: flow.JobFlow,
    JOBTEMPLATE: flow.JobTemplate,
    NUMATOPOLOGY: nodeinfo.Numatopology,
    HYPERNODE: topology.HyperNode,
    NODESHARD: shard.NodeShard,
    COLOCATIONCONFIGURATION: config.ColocationConfiguration,
    NAMESPACE: core.Namespace,
    NODE: core.Node,
    POD: core.Pod,
    SERVICE: core.Service,
    CONFIGMAP: core.ConfigMap,
    RESOURCEQUOTA: core.ResourceQuota,
    PRIORITYCLASS: core.PriorityClass,
    PODDISRUPTIONBUDGET: core.PodDisruptionBudget,
    REPLICASET: core.ReplicaSet,
    STATEFULSET: core.StatefulSet,
    REPLICATIONCONTROLLER: core.ReplicationController,
    PERSISTENTVOLUME: storage.PersistentVolume,
    PERSISTENTVOLUMECLAIM: storage.PersistentVolumeClaim,
    STORAGECLASS: storage.StorageClass,
    CSINODE: storage.CSINode,
}


def for_manifest(manifest: dict[str, object]) -> ResourceType:
    """The resource of a manifest. Raises ValueError for a kind that is not in the table."""
    api_version, kind = manifest.get("apiVersion"), manifest.get("kind")
    resource_type = BY_KIND.get((str(api_version), str(kind)))
    if resource_type is None:
        raise ValueError(f"unknown kind {kind!r} in apiVersion {api_version!r}: check both fields")
    return resource_type
