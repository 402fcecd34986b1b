"""Which fields, labels and annotations of objects identify, and which are words of the API.

`volcano_py.simulate.anonymize` renames the former and keeps the latter.
"""

from __future__ import annotations

from volcano_py.api import names

SAME = frozenset(
    (
        "default", "root", "kube-system", "kube-public", "kube-node-lease", "volcano-system", "volcano",
        "default-scheduler", "latest", "sha256", "system-cluster-critical", "system-node-critical", "*", "0.0.0.0",
        "::", "true", "false", "True", "False", "metadata.name", "controller-revision-hash", "pod-template-hash",
        "linux", "amd64", "arm64", "no-provisioner",
    )
)
"""Names that every cluster has, and words."""
DOMAINS = ("kubernetes.io", "k8s.io", "volcano.sh", "x-k8s.io", "hami.io", "nvidia.com", "huawei.com")
"""Keys of labels, annotations, taints and topologies in these domains stay; others are renamed."""
KEPT = frozenset(
    (
        "apiVersion", "kind", "phase", "state", "status", "type", "reason", "operator", "effect", "creationTimestamp",
        "deletionTimestamp", "startTime", "timeAdded", "lastTransitionTime", "lastProbeTime", "schedulerName",
        "restartPolicy", "preemptionPolicy", "protocol", "mode", "dequeueStrategy", "volumeBindingMode", "volumeMode",
        "whenUnsatisfiable", "nodeAffinityPolicy", "nodeTaintsPolicy", "resourceVersion", "qosClass", "provisioner",
        "driver", "attacher", "expression", "deviceClassName", "extendedResourceName", "allocationMode", "minAvailable",
        "maxUnavailable", "unhealthyPodEvictionPolicy", "reclaimPolicy", "matchAttribute", "resize",
        "distinctAttribute", "accessModes", "scopes", "declaredFeatures", "resource", "apiGroup", "transitionID",
    )
)
"""Fields whose text is a word of the API, a time or the name of a driver."""
NAMES = frozenset(
    (
        "name", "generateName", "namespace", "uid", "nodeName", "nominatedNodeName", "queue", "parent",
        "priorityClassName", "hostname", "subdomain", "claimName", "resourceClaimName", "resourceClaimTemplateName",
        "volumeName", "storageClassName", "persistentVolumeName", "podGroupName", "runtimeClassName", "image",
        "reference", "names", "devicePath", "volumeHandle", "volumeID", "pdName", "iqn", "monitors", "nodeID", "pool",
        "device", "request", "requests", "namespaces", "nodes", "highestTierName", "tierName", "updateRevision",
        "hostIP", "shareID", "counterSet", "requiredDuringSchedulingIgnoredDuringExecution",
        "preferredDuringSchedulingIgnoredDuringExecution",
    )
)
"""Fields whose text, or list of texts, is made of names."""
KEYS = frozenset(("topologyKey", "matchLabelKeys", "mismatchLabelKeys", "topologyKeys"))
"""Fields whose text, or list of texts, is a key of a label."""
MAPS = frozenset(("labels", "matchLabels", "nodeSelector", "annotations"))
NAMED = frozenset(("minTaskMember",))
"""Maps whose keys are names."""
WHOLE = frozenset(
    (
        "requests", "limits", "allocatable", "capacity", "hard", "used", "overhead", "minResources", "capability",
        "deserved", "guarantee", "allocated", "reservation", "allocatedResources", "attributes", "counters",
        "sharedCounters", "policies", "resReserved", "numares", "cpuDetail", "allocations", "parameters",
        "requestPolicy",
    )
)
"""Maps of amounts and attributes, which stay as they are."""
VOCABULARY = frozenset(
    (
        names.PREEMPTABLE, names.TASK_PRIORITY, names.TASK_INDEX, names.REVOCABLE_ZONE, names.OVERSUBSCRIPTION,
        names.OVERSUBSCRIPTION_CPU, names.OVERSUBSCRIPTION_MEMORY, names.OFFLINE_JOB_EVICTING, names.WARMUP,
        names.NETWORK_TOPOLOGY_HIGHEST_TIER, names.QUEUE_ALLOCATION_GATE, names.CLOSED_BY_PARENT,
        names.NUMA_TOPOLOGY_POLICY, names.NETWORK_TOPOLOGY_MODE, names.RESOURCE_STRATEGY_SCORING_TYPE,
        names.RESOURCE_STRATEGY_WEIGHT, names.VGPU_MODE, names.VGPU_PODGROUP_POLICY, names.ASCEND_VNPU_MODE,
        names.QOS_LEVEL, names.COOLDOWN_TIME, names.SLA_WAITING_TIME, names.SLA_WAITING_TIME_SHORT,
        names.JDB_MIN_AVAILABLE, names.JDB_MAX_UNAVAILABLE, names.GROUP_MIN_RESOURCES, names.VGPU_NODE_REGISTER,
        names.GPU_USE_TYPE, names.GPU_NO_USE_TYPE, names.VGPU_USE_UUID, names.VGPU_NO_USE_UUID, names.VGPU_IDS_NEW,
        names.GPU_INDEX, names.GPU_UNHEALTHY_IDS, names.HIERARCHY_WEIGHTS, names.TOPOLOGY_DECISION,
        "kubernetes.io/arch", "kubernetes.io/os", "nvidia.com/gpu.product", names.NETWORK_TOPOLOGY_SOURCE,
    )
)
"""Labels and annotations whose values are words, amounts or cards."""
REFERENCES = frozenset(
    (
        names.GROUP_NAME, names.VOLCANO_GROUP_NAME, names.QUEUE_NAME, names.POD_QUEUE_NAME, names.JOB_NAME,
        names.TASK_SPEC, names.TEMPLATE_UID, names.VGPU_NODE, "hami.io/vgpu-node", names.HIERARCHY,
        names.TASK_TOPOLOGY_AFFINITY, names.TASK_TOPOLOGY_ANTI_AFFINITY, names.TASK_TOPOLOGY_TASK_ORDER,
        names.JOB_ALLOCATED_HYPERNODE, "volume.kubernetes.io/selected-node", "volume.beta.kubernetes.io/storage-class",
    )
)
"""Annotations whose values are made of names."""
