"""The table of built-in resources, from which definitions, discovery and OpenAPI are derived."""

from __future__ import annotations

from itertools import chain
from typing import NamedTuple

from volcano_py.sandbox.apiserver.apimachinery import features
from volcano_py.sandbox.apiserver.apimachinery.features import is_at_least
from volcano_py.sandbox.apiserver.registry.resources import ALL_VERBS, STATUS_VERBS, Registry, Resource, Subresource
from volcano_py.sandbox.apiserver.registry.strategies import STRATEGIES, root_groups
from volcano_py.sandbox.apiserver.registry.strategies.events import event_from_stored, event_to_stored
from volcano_py.sandbox.apiserver.registry.strategy import Strategy
from volcano_py.sandbox.apiserver.schema.types import builtin
from volcano_py.sandbox.apiserver.serializer.protobuf import go_name
from volcano_py.sandbox.apiserver.storage.store import Store

_ALL = ALL_VERBS
_NO_COLLECTION = tuple(verb for verb in ALL_VERBS if verb != "deletecollection")
_CREATE = ("create",)
_READ = ("get", "list")


class Row(NamedTuple):
    """One resource: subresources are `name` (generic verbs) or `name:verbs[:Kind[:group/version]]`."""

    plural: str
    kind: str
    namespaced: bool = True
    short: str = ""
    categories: str = ""
    subresources: str = ""
    verbs: tuple[str, ...] = _ALL


_SCALE = "scale:get,patch,update:Scale:autoscaling/v1"

TABLE: dict[str, list[Row]] = {
    "v1": [
        Row("bindings", "Binding", verbs=_CREATE),
        Row("componentstatuses", "ComponentStatus", False, "cs", verbs=_READ),
        Row("configmaps", "ConfigMap", short="cm"),
        Row("endpoints", "Endpoints", short="ep"),
        Row("events", "Event", short="ev"),
        Row("limitranges", "LimitRange", short="limits"),
        Row("namespaces", "Namespace", False, "ns", "", "finalize:update status", _NO_COLLECTION),
        Row("nodes", "Node", False, "no", "", "proxy:create,delete,get,patch,update:NodeProxyOptions status"),
        Row("persistentvolumeclaims", "PersistentVolumeClaim", short="pvc", subresources="status"),
        Row("persistentvolumes", "PersistentVolume", False, "pv", subresources="status"),
        Row(
            "pods",
            "Pod",
            short="po",
            categories="all",
            subresources="attach:create,get:PodAttachOptions binding:create:Binding ephemeralcontainers "
            "eviction:create:Eviction:policy/v1 exec:create,get:PodExecOptions log:get "
            "portforward:create,get:PodPortForwardOptions "
            "proxy:create,delete,get,patch,update:PodProxyOptions resize status",
        ),
        Row("podtemplates", "PodTemplate"),
        Row(
            "replicationcontrollers",
            "ReplicationController",
            short="rc",
            categories="all",
            subresources=_SCALE + " status",
        ),
        Row("resourcequotas", "ResourceQuota", short="quota", subresources="status"),
        Row("secrets", "Secret"),
        Row(
            "serviceaccounts",
            "ServiceAccount",
            short="sa",
            subresources="token:create:TokenRequest:authentication.k8s.io/v1",
        ),
        Row(
            "services",
            "Service",
            short="svc",
            categories="all",
            subresources="proxy:create,delete,get,patch,update:ServiceProxyOptions status",
            verbs=_ALL,
        ),
    ],
    "apiregistration.k8s.io/v1": [
        Row("apiservices", "APIService", False, "", "api-extensions", "status"),
    ],
    "apps/v1": [
        Row("controllerrevisions", "ControllerRevision"),
        Row("daemonsets", "DaemonSet", True, "ds", "all", "status"),
        Row("deployments", "Deployment", True, "deploy", "all", _SCALE + " status"),
        Row("replicasets", "ReplicaSet", True, "rs", "all", _SCALE + " status"),
        Row("statefulsets", "StatefulSet", True, "sts", "all", _SCALE + " status"),
    ],
    "events.k8s.io/v1": [Row("events", "Event", short="ev")],
    "authentication.k8s.io/v1": [
        Row("selfsubjectreviews", "SelfSubjectReview", False, verbs=_CREATE),
        Row("tokenreviews", "TokenReview", False, verbs=_CREATE),
    ],
    "authorization.k8s.io/v1": [
        Row("localsubjectaccessreviews", "LocalSubjectAccessReview", verbs=_CREATE),
        Row("selfsubjectaccessreviews", "SelfSubjectAccessReview", False, verbs=_CREATE),
        Row("selfsubjectrulesreviews", "SelfSubjectRulesReview", False, verbs=_CREATE),
        Row("subjectaccessreviews", "SubjectAccessReview", False, verbs=_CREATE),
    ],
    "autoscaling/v2": [Row("horizontalpodautoscalers", "HorizontalPodAutoscaler", True, "hpa", "all", "status")],
    "autoscaling/v1": [Row("horizontalpodautoscalers", "HorizontalPodAutoscaler", True, "hpa", "all", "status")],
    "batch/v1": [
        Row("cronjobs", "CronJob", True, "cj", "all", "status"),
        Row("jobs", "Job", True, "", "all", "status"),
    ],
    "certificates.k8s.io/v1": [
        Row("certificatesigningrequests", "CertificateSigningRequest", False, "csr", "", "approval status"),
    ],
    "networking.k8s.io/v1": [
        Row("ingressclasses", "IngressClass", False),
        Row("ingresses", "Ingress", True, "ing", "", "status"),
        Row("ipaddresses", "IPAddress", False, "ip"),
        Row("networkpolicies", "NetworkPolicy", True, "netpol"),
        Row("servicecidrs", "ServiceCIDR", False, "", "", "status"),
    ],
    "policy/v1": [Row("poddisruptionbudgets", "PodDisruptionBudget", True, "pdb", "", "status")],
    "rbac.authorization.k8s.io/v1": [
        Row("clusterrolebindings", "ClusterRoleBinding", False),
        Row("clusterroles", "ClusterRole", False),
        Row("rolebindings", "RoleBinding"),
        Row("roles", "Role"),
    ],
    "storage.k8s.io/v1": [
        Row("csidrivers", "CSIDriver", False),
        Row("csinodes", "CSINode", False),
        Row("csistoragecapacities", "CSIStorageCapacity"),
        Row("storageclasses", "StorageClass", False, "sc"),
        Row("volumeattachments", "VolumeAttachment", False, "", "", "status"),
        Row("volumeattributesclasses", "VolumeAttributesClass", False, "vac"),
    ],
    "admissionregistration.k8s.io/v1": [
        Row("mutatingadmissionpolicies", "MutatingAdmissionPolicy", False, "", "api-extensions"),
        Row("mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", False, "", "api-extensions"),
        Row("mutatingwebhookconfigurations", "MutatingWebhookConfiguration", False, "", "api-extensions"),
        Row("validatingadmissionpolicies", "ValidatingAdmissionPolicy", False, "", "api-extensions", "status"),
        Row("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", False, "", "api-extensions"),
        Row("validatingwebhookconfigurations", "ValidatingWebhookConfiguration", False, "", "api-extensions"),
    ],
    "apiextensions.k8s.io/v1": [
        Row("customresourcedefinitions", "CustomResourceDefinition", False, "crd,crds", "api-extensions", "status")
    ],
    "scheduling.k8s.io/v1": [Row("priorityclasses", "PriorityClass", False, "pc")],
    "coordination.k8s.io/v1": [Row("leases", "Lease")],
    "node.k8s.io/v1": [Row("runtimeclasses", "RuntimeClass", False)],
    "discovery.k8s.io/v1": [Row("endpointslices", "EndpointSlice")],
    "resource.k8s.io/v1": [
        Row("deviceclasses", "DeviceClass", False),
        Row("resourceclaims", "ResourceClaim", subresources="status"),
        Row("resourceclaimtemplates", "ResourceClaimTemplate"),
        Row("resourceslices", "ResourceSlice", False),
    ],
    "flowcontrol.apiserver.k8s.io/v1": [
        Row("flowschemas", "FlowSchema", False, subresources="status"),
        Row("prioritylevelconfigurations", "PriorityLevelConfiguration", False, subresources="status"),
    ],
}

SINCE: dict[str, dict[str, tuple[str, ...]]] = {
    "1.34": {
        "resource.k8s.io/v1": ("DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice"),
        "storage.k8s.io/v1": ("VolumeAttributesClass",),
    },
    "1.36": {"admissionregistration.k8s.io/v1": ("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding")},
}
"""The kinds of the table that versions of Kubernetes before this one do not serve by default."""

_PODGROUPS = Row("podgroups", "PodGroup", subresources="status")
_WORKLOADS = Row("workloads", "Workload")
_COMPOSITES = Row("compositepodgroups", "CompositePodGroup", subresources="status")
GATED: dict[str, dict[str, dict[str, list[Row]]]] = {
    "1.36": {features.GENERIC_WORKLOAD: {"scheduling.k8s.io/v1alpha2": [_PODGROUPS, _WORKLOADS]}},
    "1.37": {
        features.GENERIC_WORKLOAD: {
            "scheduling.k8s.io/v1beta1": [_PODGROUPS, _WORKLOADS],
            "scheduling.k8s.io/v1alpha3": [_PODGROUPS, _WORKLOADS],
        },
        features.COMPOSITE: {"scheduling.k8s.io/v1alpha3": [_COMPOSITES]},
    },
}
"""Resources that are served only with a feature gate, by the version of Kubernetes."""


def _subresources(text: str, kind: str) -> dict[str, Subresource]:
    out = {}
    for spelled in text.split():
        name, verbs, own_kind, version = (*spelled.split(":"), "", "", "")[:4]
        group, _, short = version.rpartition("/")
        out[name] = Subresource(
            name,
            own_kind or kind,
            tuple(verbs.split(",")) if verbs else STATUS_VERBS,
            group if version else None,
            short if version else None,
        )
    return out


def _singular(kind: str) -> str:
    return kind.lower()


def is_served(api_version: str, kind: str, kubernetes: str) -> bool:
    """Whether a version of Kubernetes serves a kind of the table by default."""
    later = (kinds for since, kinds in SINCE.items() if not is_at_least(kubernetes, since))
    return not any(kind in kinds.get(api_version, ()) for kinds in later)


def install(registry: Registry, store: Store, gates: frozenset[str] = frozenset(), kubernetes: str = "1.36") -> None:
    """Define every built-in resource, and those of the enabled feature gates."""
    gated = [table for gate, table in GATED.get(kubernetes, {}).items() if gate in gates]
    strategies = {**STRATEGIES, **root_groups.STRATEGIES} if is_at_least(kubernetes, "1.37") else STRATEGIES
    for api_version, rows in chain(TABLE.items(), *(table.items() for table in gated)):
        group, _, version = api_version.rpartition("/")
        served = [row for row in rows if is_served(api_version, row.kind, kubernetes)]
        if not served:
            continue
        registry.add_version(group, version)
        for row in served:
            qualified = f"{row.plural}.{group}" if group else row.plural
            is_new_event = group == "events.k8s.io"
            collection = store.collection("events" if is_new_event else qualified)
            registry.add(
                Resource(
                    group,
                    version,
                    row.kind,
                    row.plural,
                    _singular(row.kind),
                    row.namespaced,
                    row.verbs,
                    builtin(go_name(api_version, row.kind)),
                    strategies.get(qualified) or Strategy(has_status="status" in row.subresources.split()),
                    collection,
                    tuple(filter(None, row.short.split(","))),
                    tuple(filter(None, row.categories.split(","))),
                    "",
                    _subresources(row.subresources, row.kind),
                    None,
                    event_from_stored if is_new_event else None,
                    event_to_stored if is_new_event else None,
                )
            )
