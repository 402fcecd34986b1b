"""API paths of kinds, and the table of Kubernetes' own kinds. Volcano's are in `kinds`."""

from __future__ import annotations

from msgspec import Struct


class ResourceType(Struct, frozen=True, cache_hash=True, gc=False):
    """An API resource: group (empty for core), version, plural, kind."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()

    @property
    def api_version(self) -> str:
        """`group/version`, or the version for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """The URL path of the collection (no namespace: all namespaces), of one object, or of its subresource."""
        path = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        if self.namespaced and namespace:
            path += f"/namespaces/{namespace}"
        path += f"/{self.plural}"
        if name:
            path += f"/{name}"
        if subresource:
            path += f"/{subresource}"
        return path


def namespaced_kind(
    api_version: str, plural: str, kind: str, *short_names: str, namespaced: bool = True
) -> ResourceType:
    """A namespaced kind from `group/version`, or `version` for the core group."""
    group, _, version = api_version.rpartition("/")
    return ResourceType(group, version, plural, kind, namespaced, short_names)


def cluster_kind(api_version: str, plural: str, kind: str, *short_names: str) -> ResourceType:
    """A cluster-scoped kind."""
    return namespaced_kind(api_version, plural, kind, *short_names, namespaced=False)


NAMESPACE = cluster_kind("v1", "namespaces", "Namespace", "ns")
NODE = cluster_kind("v1", "nodes", "Node", "no")
POD = namespaced_kind("v1", "pods", "Pod", "po")
SERVICE = namespaced_kind("v1", "services", "Service", "svc")
CONFIGMAP = namespaced_kind("v1", "configmaps", "ConfigMap", "cm")
SECRET = namespaced_kind("v1", "secrets", "Secret")
SERVICEACCOUNT = namespaced_kind("v1", "serviceaccounts", "ServiceAccount", "sa")
EVENT = namespaced_kind("v1", "events", "Event", "ev")
PERSISTENTVOLUME = cluster_kind("v1", "persistentvolumes", "PersistentVolume", "pv")
PERSISTENTVOLUMECLAIM = namespaced_kind("v1", "persistentvolumeclaims", "PersistentVolumeClaim", "pvc")
RESOURCEQUOTA = namespaced_kind("v1", "resourcequotas", "ResourceQuota", "quota")
LIMITRANGE = namespaced_kind("v1", "limitranges", "LimitRange", "limits")
ENDPOINTS = namespaced_kind("v1", "endpoints", "Endpoints", "ep")
REPLICATIONCONTROLLER = namespaced_kind("v1", "replicationcontrollers", "ReplicationController", "rc")
DEPLOYMENT = namespaced_kind("apps/v1", "deployments", "Deployment", "deploy")
REPLICASET = namespaced_kind("apps/v1", "replicasets", "ReplicaSet", "rs")
STATEFULSET = namespaced_kind("apps/v1", "statefulsets", "StatefulSet", "sts")
DAEMONSET = namespaced_kind("apps/v1", "daemonsets", "DaemonSet", "ds")
BATCH_JOB = namespaced_kind("batch/v1", "jobs", "Job")
BATCH_CRONJOB = namespaced_kind("batch/v1", "cronjobs", "CronJob", "cj")
PODDISRUPTIONBUDGET = namespaced_kind("policy/v1", "poddisruptionbudgets", "PodDisruptionBudget", "pdb")
PRIORITYCLASS = cluster_kind("scheduling.k8s.io/v1", "priorityclasses", "PriorityClass", "pc")
NATIVE_PODGROUP = namespaced_kind("scheduling.k8s.io/v1alpha2", "podgroups", "PodGroup")
"""Of Kubernetes 1.36."""
COMPOSITE_PODGROUP = namespaced_kind("scheduling.k8s.io/v1alpha3", "compositepodgroups", "CompositePodGroup")
NATIVE_PODGROUP_BETA = namespaced_kind("scheduling.k8s.io/v1beta1", "podgroups", "PodGroup")
NATIVE_PODGROUP_ALPHA3 = namespaced_kind("scheduling.k8s.io/v1alpha3", "podgroups", "PodGroup")
NATIVE_PODGROUPS = (NATIVE_PODGROUP_BETA, NATIVE_PODGROUP_ALPHA3, NATIVE_PODGROUP)
"""The versions of PodGroups of scheduling.k8s.io. Of several that a cluster serves, the first is used."""
LEASE = namespaced_kind("coordination.k8s.io/v1", "leases", "Lease")
STORAGECLASS = cluster_kind("storage.k8s.io/v1", "storageclasses", "StorageClass", "sc")
CSINODE = cluster_kind("storage.k8s.io/v1", "csinodes", "CSINode")
CSIDRIVER = cluster_kind("storage.k8s.io/v1", "csidrivers", "CSIDriver")
CSISTORAGECAPACITY = namespaced_kind("storage.k8s.io/v1", "csistoragecapacities", "CSIStorageCapacity")
VOLUMEATTACHMENT = cluster_kind("storage.k8s.io/v1", "volumeattachments", "VolumeAttachment")
NETWORKPOLICY = namespaced_kind("networking.k8s.io/v1", "networkpolicies", "NetworkPolicy", "netpol")
INGRESS = namespaced_kind("networking.k8s.io/v1", "ingresses", "Ingress", "ing")
ENDPOINTSLICE = namespaced_kind("discovery.k8s.io/v1", "endpointslices", "EndpointSlice")
ROLE = namespaced_kind("rbac.authorization.k8s.io/v1", "roles", "Role")
ROLEBINDING = namespaced_kind("rbac.authorization.k8s.io/v1", "rolebindings", "RoleBinding")
CLUSTERROLE = cluster_kind("rbac.authorization.k8s.io/v1", "clusterroles", "ClusterRole")
CLUSTERROLEBINDING = cluster_kind("rbac.authorization.k8s.io/v1", "clusterrolebindings", "ClusterRoleBinding")
RESOURCECLAIM = namespaced_kind("resource.k8s.io/v1", "resourceclaims", "ResourceClaim")
RESOURCECLAIMTEMPLATE = namespaced_kind("resource.k8s.io/v1", "resourceclaimtemplates", "ResourceClaimTemplate")
RESOURCESLICE = cluster_kind("resource.k8s.io/v1", "resourceslices", "ResourceSlice")
DEVICETAINTRULE = cluster_kind("resource.k8s.io/v1beta2", "devicetaintrules", "DeviceTaintRule")
DEVICECLASS = cluster_kind("resource.k8s.io/v1", "deviceclasses", "DeviceClass")
CUSTOMRESOURCEDEFINITION = cluster_kind(
    "apiextensions.k8s.io/v1", "customresourcedefinitions", "CustomResourceDefinition", "crd", "crds"
)
APISERVICE = cluster_kind("apiregistration.k8s.io/v1", "apiservices", "APIService")
MUTATINGWEBHOOKCONFIGURATION = cluster_kind(
    "admissionregistration.k8s.io/v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration"
)
VALIDATINGWEBHOOKCONFIGURATION = cluster_kind(
    "admissionregistration.k8s.io/v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration"
)
VALIDATINGADMISSIONPOLICY = cluster_kind(
    "admissionregistration.k8s.io/v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy"
)
VALIDATINGADMISSIONPOLICYBINDING = cluster_kind(
    "admissionregistration.k8s.io/v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding"
)

KUBERNETES: tuple[ResourceType, ...] = tuple(
    resource_type for resource_type in list(globals().values()) if isinstance(resource_type, ResourceType)
)
"""Kubernetes' own kinds."""
