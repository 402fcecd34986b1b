"""Keys of annotations, labels, environment variables and resources that Volcano's components share.

The comment gives the object, and whether it is an annotation (ann) or a label.
"""

from __future__ import annotations

from typing import Final

SCHEDULER_NAME: Final = "volcano"

# Pods and their job
TASK_SPEC: Final = "volcano.sh/task-spec"  # pod ann + label: task name
TASK_INDEX: Final = "volcano.sh/task-index"  # pod ann + label: replica index within the task
TASK_PRIORITY: Final = "volcano.sh/task-priority"  # pod ann: int32, overrides spec.priority
JOB_NAME: Final = "volcano.sh/job-name"  # pod ann + label
JOB_NAMESPACE: Final = "volcano.sh/job-namespace"  # pod label
JOB_VERSION: Final = "volcano.sh/job-version"  # pod ann: the job's status.version when the pod was created
JOB_RETRY_COUNT: Final = "volcano.sh/job-retry-count"  # pod ann: the job's status.retryCount then
QUEUE_NAME: Final = "volcano.sh/queue-name"  # pod ann + label
TEMPLATE_UID: Final = "volcano.sh/template-uid"  # pod ann: <job>-<task>, equal pods
PARTITION_ID: Final = "volcano.sh/partition-id"  # pod label: index / partitionSize
CONTROLLER_OUT_OF_SYNC: Final = "volcano.sh/controller-out-of-sync"  # pod ann "true": ended by the controller
JOB_TYPE: Final = "volcano.sh/job-type"  # job label
JOB_FORWARDING: Final = "volcano.sh/job-forwarding"  # job ann, pod ann + label: "true"
FORWARD_CLUSTER: Final = "volcano.sh/forward-cluster"  # pod, pod group ann
BURST_NAME: Final = "volcano.sh/burst-name"
SILO_RESOURCE: Final = "volcano.sh/silo-resource"
CLI_JOB_LABEL: Final = "job.volcano.sh"  # label of pod templates that the command line creates

# Pod groups
GROUP_NAME: Final = "scheduling.k8s.io/group-name"  # pod ann: its PodGroup
VOLCANO_GROUP_NAME: Final = "scheduling.volcano.sh/group-name"  # pod ann: the other spelling, from users
POD_QUEUE_NAME: Final = "scheduling.volcano.sh/queue-name"  # pod or namespace ann: queue of plain pods
GROUP_MIN_MEMBER: Final = "scheduling.volcano.sh/group-min-member"  # ann of a pod's owner
GROUP_MIN_RESOURCES: Final = "scheduling.volcano.sh/group-min-resources"
QUEUE_ALLOCATION_GATE: Final = "scheduling.volcano.sh/queue-allocation-gate"  # gate, and pod ann "true"
PREEMPTABLE: Final = "volcano.sh/preemptable"  # job, pod, pod group ann or label
MAX_RUN_TIME: Final = "volcano.sh/max-run-time"  # a duration such as 2h30m, or seconds
ON_MAX_RUN_TIME: Final = "volcano.sh/on-max-run-time"  # job ann: an action
COOLDOWN_TIME: Final = "volcano.sh/cooldown-time"  # the same
REVOCABLE_ZONE: Final = "volcano.sh/revocable-zone"  # job, pod, pod group ann; node label
JDB_MIN_AVAILABLE: Final = "volcano.sh/jdb-min-available"  # job, pod group ann
JDB_MAX_UNAVAILABLE: Final = "volcano.sh/jdb-max-unavailable"
SLA_WAITING_TIME: Final = "volcano.sh/sla-waiting-time"  # job, pod group ann: duration
SLA_WAITING_TIME_SHORT: Final = "sla-waiting-time"  # the same, older
JOB_ALLOCATED_HYPERNODE: Final = "volcano.sh/job-allocated-hypernode"  # pod group ann
TASK_TOPOLOGY_AFFINITY: Final = "volcano.sh/task-topology-affinity"  # job, pod group ann
TASK_TOPOLOGY_ANTI_AFFINITY: Final = "volcano.sh/task-topology-anti-affinity"
TASK_TOPOLOGY_TASK_ORDER: Final = "volcano.sh/task-topology-task-order"
NETWORK_TOPOLOGY_MODE: Final = "volcano.sh/network-topology-mode"  # pod ann
NETWORK_TOPOLOGY_HIGHEST_TIER: Final = "volcano.sh/network-topology-highest-tier"  # pod ann
RESOURCE_STRATEGY_SCORING_TYPE: Final = "volcano.sh/resource-strategy-scoring-type"  # pod ann
RESOURCE_STRATEGY_WEIGHT: Final = "volcano.sh/resource-strategy-weight"  # pod ann

# Queues
HIERARCHY: Final = "volcano.sh/hierarchy"  # queue ann: root/eng/dev
HIERARCHY_WEIGHTS: Final = "volcano.sh/hierarchy-weights"  # queue ann: 1/2/8
CLOSED_BY_PARENT: Final = "volcano.sh/closed-by-parent"  # queue ann "true" / "false"
QUEUE_ACCESS_CHECKED: Final = "volcano.sh/queue-access-checked"  # command ann, from admission: action and queue
QUEUE_ACCESS_USER: Final = "volcano.sh/queue-access-user"  # command ann, from admission: who was checked
NODEGROUP_RESOURCE_LIMITS: Final = "volcano.sh/nodegroup-resource-limits"  # queue ann

# Nodes and HyperNodes
NODEGROUP_NAME: Final = "volcano.sh/nodegroup-name"  # node label
OVERSUBSCRIPTION: Final = "volcano.sh/oversubscription"  # node label: bool
OVERSUBSCRIPTION_CPU: Final = "volcano.sh/oversubscription-cpu"  # node ann: milli-cores
OVERSUBSCRIPTION_MEMORY: Final = "volcano.sh/oversubscription-memory"  # node ann: bytes
OFFLINE_JOB_EVICTING: Final = "volcano.sh/offline-job-evicting"  # node ann: bool
NETWORK_TOPOLOGY_SOURCE: Final = "volcano.sh/network-topology-source"  # HyperNode label
WARMUP: Final = "node.volcano.sh/warmup"  # node label "true"
NUMA_TOPOLOGY_POLICY: Final = "volcano.sh/numa-topology-policy"  # pod ann
TOPOLOGY_DECISION: Final = "volcano.sh/topology-decision"  # pod ann, from the scheduler

# Flows, cron, quality of service, other controllers
CREATED_BY_JOB_TEMPLATE: Final = "volcano.sh/createdByJobTemplate"  # job label + ann: <namespace>.<name>
CREATED_BY_JOB_FLOW: Final = "volcano.sh/createdByJobFlow"
CRONJOB_SCHEDULED_TIMESTAMP: Final = "volcano.sh/cronjob-scheduled-timestamp"  # job ann: RFC 3339
RESOURCE_GROUP: Final = "volcano.sh/resource-group"  # pod ann
QOS_LEVEL: Final = "volcano.sh/qos-level"  # pod ann: LC, HLS, LS, BE
COLOCATION_CONFIG_NAME: Final = "volcano.sh/colocation-config-name"  # pod ann
COLOCATION_CONFIG: Final = "volcano.sh/colocation-config"  # pod ann
HCCL_RANK_INDEX: Final = "hccl/rankIndex"  # pod ann

# Devices
GPU_MEMORY: Final = "volcano.sh/gpu-memory"  # resource
GPU_NUMBER: Final = "volcano.sh/gpu-number"  # resource
GPU_INDEX: Final = "volcano.sh/gpu-index"  # pod ann
GPU_UNHEALTHY_IDS: Final = "volcano.sh/gpu-unhealthy-ids"  # node ann
PREDICATE_TIME: Final = "volcano.sh/predicate-time"  # pod ann: nanoseconds
VGPU_NUMBER: Final = "volcano.sh/vgpu-number"  # resource
VGPU_MEMORY: Final = "volcano.sh/vgpu-memory"  # resource
VGPU_MEMORY_PERCENTAGE: Final = "volcano.sh/vgpu-memory-percentage"  # resource
VGPU_CORES: Final = "volcano.sh/vgpu-cores"  # resource
VGPU_MODE: Final = "volcano.sh/vgpu-mode"  # pod ann
VGPU_NODE: Final = "volcano.sh/vgpu-node"  # pod ann
VGPU_TIME: Final = "volcano.sh/vgpu-time"  # pod ann: seconds
VGPU_IDS_NEW: Final = "volcano.sh/vgpu-ids-new"  # pod ann
VGPU_DEVICES_TO_ALLOCATE: Final = "volcano.sh/devices-to-allocate"  # pod ann
VGPU_BIND_PHASE: Final = "volcano.sh/bind-phase"  # pod ann
VGPU_BIND_TIME: Final = "volcano.sh/bind-time"  # pod ann
VGPU_NODE_REGISTER: Final = "volcano.sh/node-vgpu-register"  # node ann
VGPU_USE_UUID: Final = "volcano.sh/vgpu-use-gpuuuid"  # pod ann
VGPU_NO_USE_UUID: Final = "volcano.sh/vgpu-nouse-gpuuuid"  # pod ann
VGPU_PODGROUP_POLICY: Final = "volcano.sh/vgpu-podgroup-policy"  # pod ann
GPU_USE_TYPE: Final = "nvidia.com/use-gputype"  # pod ann
GPU_NO_USE_TYPE: Final = "nvidia.com/nouse-gputype"  # pod ann
ASCEND_VNPU_MODE: Final = "huawei.com/vnpu-mode"  # pod ann
NPU_CORE: Final = "huawei.com/npu-core"  # resource; pod ann: chips, or a chip and a template
NPU_310P: Final = "huawei.com/Ascend310P"  # key in device lists; pod ann: whole chips in use
NPU_REAL: Final = "huawei.com/AscendReal"  # pod ann: the devices that the device plugin has created
NPU_JOB_KIND: Final = "ring-controller.atlas"  # pod label
NPU_LEVEL: Final = "vnpu-level"  # pod label: low, high
NPU_DVPP: Final = "vnpu-dvpp"  # pod label: yes, no, null
NPU_TIME: Final = "predicate-time"  # pod ann: nanoseconds
NPU_ACCELERATOR: Final = "accelerator"  # node label
NPU_SERVER_TYPE: Final = "servertype"  # node label
NPU_CHIP_NAME: Final = "node.kubernetes.io/npu.chip.name"  # node label
NPU_BASE_DEVICES: Final = "baseDeviceInfos"  # node ann
NVIDIA_GPU: Final = "nvidia.com/gpu"  # resource

HELM_RESOURCE_POLICY: Final = "helm.sh/resource-policy"  # CRD ann "keep"
