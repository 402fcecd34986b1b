"""Kubernetes' own PodGroup and CompositePodGroup, scheduling.k8s.io, as far as the scheduler reads them.

Not to be confused with Volcano's PodGroup, in `volcano_py.api.scheduling`. One form holds the objects of all versions:
v1alpha2 (Kubernetes 1.36), v1alpha3 and v1beta1 (1.37). Fields that only some versions have name them.
"""

from __future__ import annotations

from msgspec import field

from volcano_py.api.meta import ApiObject, ApiType, Condition

API_VERSION = "scheduling.k8s.io/v1alpha2"
V1ALPHA3 = "scheduling.k8s.io/v1alpha3"
V1BETA1 = "scheduling.k8s.io/v1beta1"
VERSIONS = (API_VERSION, V1ALPHA3, V1BETA1)
"""All that have been served: the first in Kubernetes 1.36, the others since 1.37."""

# Conditions of a PodGroup, and their reasons
POD_GROUP_SCHEDULED = "PodGroupScheduled"
"""In v1alpha2."""
POD_GROUP_INITIALLY_SCHEDULED = "PodGroupInitiallyScheduled"
"""Since v1alpha3: once True it stays."""
COMPOSITE_INITIALLY_SCHEDULED = "CompositePodGroupInitiallyScheduled"
"""The same of a CompositePodGroup."""
SCHEDULED_TYPES = (COMPOSITE_INITIALLY_SCHEDULED, POD_GROUP_INITIALLY_SCHEDULED, POD_GROUP_SCHEDULED)
"""Those that state whether a group has its minimum; an object has one of them."""
DISRUPTION_TARGET = "DisruptionTarget"
SCHEDULED = "Scheduled"
UNSCHEDULABLE = "Unschedulable"
PREEMPTION_BY_SCHEDULER = "PreemptionByScheduler"

DISRUPTED_WHOLE = "PodGroup"
"""The disruptionMode, in v1alpha2, of PodGroups whose pods are evicted together or not at all."""


class BasicPolicy(ApiType):
    """The pods are scheduled one by one."""


class GangPolicy(ApiType):
    min_count: int = 1


class SchedulingPolicy(ApiType):
    """Exactly one is set."""

    basic: BasicPolicy | None = None
    gang: GangPolicy | None = None


class CompositeGangPolicy(ApiType):
    min_group_count: int = 1


class CompositeSchedulingPolicy(ApiType):
    """Exactly one is set."""

    basic: BasicPolicy | None = None
    gang: CompositeGangPolicy | None = None


class SingleMode(ApiType):
    """The pods may be evicted one at a time."""


class AllMode(ApiType):
    """The pods are evicted together or not at all."""


class DisruptionMode(ApiType):
    """Exactly one is set; since v1alpha3."""

    single: SingleMode | None = None
    all: AllMode | None = None


class WorkloadRef(ApiType):
    """The template from which a group was made; since v1alpha3."""

    workload_name: str = ""
    template_name: str = ""


class GroupClaim(ApiType):
    """A ResourceClaim that the members share; exactly one of the two names is set."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class GroupClaimStatus(ApiType):
    name: str = ""
    resource_claim_name: str | None = None


class TopologyConstraint(ApiType):
    """All pods of the group are on nodes with the same value of this label."""

    key: str = ""


class SchedulingConstraints(ApiType):
    topology: list[TopologyConstraint] | None = None


class PodGroupSpec(ApiType):
    scheduling_policy: SchedulingPolicy = field(default_factory=SchedulingPolicy)
    scheduling_constraints: SchedulingConstraints | None = None
    disruption_mode: str | DisruptionMode | None = None
    priority_class_name: str = ""
    priority: int | None = None
    preemption_policy: str | None = None
    """Since v1alpha3, as the next two."""
    parent_composite_pod_group_name: str | None = None
    workload_ref: WorkloadRef | None = None
    resource_claims: list[GroupClaim] | None = None

    @property
    def evicted_whole(self) -> bool:
        """Whether the pods are evicted together or not at all."""
        return _is_whole(self.disruption_mode)

    @property
    def topology_key(self) -> str:
        """The label whose value all nodes of the group share; empty: none."""
        return _topology_key(self.scheduling_constraints)


class PodGroupStatus(ApiType):
    conditions: list[Condition] | None = None
    resource_claim_statuses: list[GroupClaimStatus] | None = None


class PodGroup(ApiObject):
    api_version: str = API_VERSION
    kind: str = "PodGroup"
    spec: PodGroupSpec = field(default_factory=PodGroupSpec)
    status: PodGroupStatus = field(default_factory=PodGroupStatus)


class CompositePodGroupSpec(ApiType):
    scheduling_policy: CompositeSchedulingPolicy = field(default_factory=CompositeSchedulingPolicy)
    scheduling_constraints: SchedulingConstraints | None = None
    disruption_mode: DisruptionMode | None = None
    priority_class_name: str = ""
    priority: int | None = None
    preemption_policy: str | None = None
    parent_composite_pod_group_name: str | None = None
    workload_ref: WorkloadRef | None = None

    @property
    def evicted_whole(self) -> bool:
        """Whether all pods below it are evicted together or not at all."""
        return _is_whole(self.disruption_mode)

    @property
    def topology_key(self) -> str:
        """The label whose value all nodes of the group share; empty: none."""
        return _topology_key(self.scheduling_constraints)


class CompositePodGroup(ApiObject):
    """A group of PodGroups and of other CompositePodGroups, which name it as their parent; v1alpha3."""

    api_version: str = V1ALPHA3
    kind: str = "CompositePodGroup"
    spec: CompositePodGroupSpec = field(default_factory=CompositePodGroupSpec)
    status: PodGroupStatus = field(default_factory=PodGroupStatus)


AnyGroup = PodGroup | CompositePodGroup


def _is_whole(mode: str | DisruptionMode | None) -> bool:
    return mode.all is not None if isinstance(mode, DisruptionMode) else mode == DISRUPTED_WHOLE


def _topology_key(constraints: SchedulingConstraints | None) -> str:
    topology = constraints.topology if constraints is not None else None
    return topology[0].key if topology else ""
