"""PodGroup and Queue (scheduling.volcano.sh/v1beta1)."""

from __future__ import annotations

from msgspec import field

from volcano_py.api.core import ResourceList
from volcano_py.api.meta import ApiObject, ApiType, Condition, LabelSelector

API_VERSION = "scheduling.volcano.sh/v1beta1"

# PodGroup phases
PENDING = "Pending"
INQUEUE = "Inqueue"
RUNNING = "Running"
UNKNOWN = "Unknown"
COMPLETED = "Completed"

# PodGroup condition types, reasons and messages
UNSCHEDULABLE = "Unschedulable"
SCHEDULED = "Scheduled"
FAILED_CREATE = "FailedCreate"
"""Of the controllers: the API server rejects the pods of the group."""
REASON_POD_FAILED = "PodFailed"
REASON_POD_DELETED = "PodDeleted"
REASON_NOT_ENOUGH_RESOURCES = "NotEnoughResources"
REASON_NOT_ENOUGH_TASKS = "NotEnoughTasks"
REASON_NOT_ENOUGH_PODS_OF_TASK = "NotEnoughPodsOfTask"
POD_GROUP_READY = "pod group is ready"
POD_GROUP_NOT_READY = "pod group is not ready"

# Queue states
QUEUE_OPEN = "Open"
QUEUE_CLOSED = "Closed"
QUEUE_CLOSING = "Closing"
QUEUE_UNKNOWN = "Unknown"

ROOT_QUEUE = "root"
DEFAULT_QUEUE = "default"

# Network topology modes
HARD = "hard"
SOFT = "soft"


class NetworkTopology(ApiType):
    """The maximum distance of the pods, required (hard) or preferred (soft); set a tier or a tier name, not both."""

    mode: str = HARD
    highest_tier_allowed: int | None = None
    highest_tier_name: str = ""


class SubGroupPolicy(ApiType):
    """Gangs within a gang: pods with equal values of `match_label_keys` form one of `sub_group_size`."""

    name: str = ""
    network_topology: NetworkTopology | None = None
    sub_group_size: int | None = 1
    min_sub_groups: int | None = 0
    label_selector: LabelSelector | None = None
    match_label_keys: list[str] | None = None


class PodGroupSpec(ApiType):
    min_member: int = 0
    min_task_member: dict[str, int] | None = None
    queue: str = DEFAULT_QUEUE
    priority_class_name: str = ""
    min_resources: ResourceList | None = None
    network_topology: NetworkTopology | None = None
    sub_group_policy: list[SubGroupPolicy] | None = None


class PodGroupCondition(ApiType):
    type: str = ""
    status: str = ""
    transition_id: str = field(default="", name="transitionID")
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""


class PodGroupStatus(ApiType):
    phase: str = ""
    conditions: list[PodGroupCondition] | None = None
    running: int = 0
    succeeded: int = 0
    failed: int = 0


class PodGroup(ApiObject):
    """A gang. It has no status subresource: an update of the object includes the status."""

    api_version: str = API_VERSION
    kind: str = "PodGroup"
    spec: PodGroupSpec = field(default_factory=PodGroupSpec)
    status: PodGroupStatus = field(default_factory=PodGroupStatus)


class Guarantee(ApiType):
    resource: ResourceList | None = None


class NodeGroupAffinity(ApiType):
    """Names of node groups (node label `volcano.sh/nodegroup-name`)."""

    required_during_scheduling_ignored_during_execution: list[str] | None = None
    preferred_during_scheduling_ignored_during_execution: list[str] | None = None


class QueueAffinity(ApiType):
    node_group_affinity: NodeGroupAffinity | None = None
    node_group_anti_affinity: NodeGroupAffinity | None = None


class Cluster(ApiType):
    """Another cluster to which jobs of a queue can be forwarded."""

    name: str = ""
    weight: int = 0
    capacity: ResourceList | None = None


class QueueSpec(ApiType):
    weight: int = 1
    capability: ResourceList | None = None
    deserved: ResourceList | None = None
    guarantee: Guarantee | None = None
    reclaimable: bool | None = None
    parent: str = ""
    priority: int = 0
    dequeue_strategy: str = "traverse"
    type: str = ""
    affinity: QueueAffinity | None = None
    extend_clusters: list[Cluster] | None = None


class Reservation(ApiType):
    nodes: list[str] | None = None
    resource: ResourceList | None = None


class QueueStatus(ApiType):
    """The counters of PodGroups by phase are written by the queue controller; in Volcano no component writes them."""

    state: str = ""
    unknown: int = 0
    pending: int = 0
    running: int = 0
    inqueue: int = 0
    completed: int = 0
    reservation: Reservation | None = None
    allocated: ResourceList | None = None
    conditions: list[Condition] | None = None
    """volcano_py only: the problems that admission would deny, in clusters without webhooks."""


class Queue(ApiObject):
    api_version: str = API_VERSION
    kind: str = "Queue"
    spec: QueueSpec = field(default_factory=QueueSpec)
    status: QueueStatus = field(default_factory=QueueStatus)
