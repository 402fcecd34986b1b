"""Kubernetes' own PodGroup, scheduling.k8s.io/v1alpha2, as far as the scheduler reads it.

Not to be confused with Volcano's, in `volcano_py.api.scheduling`.
"""

from __future__ import annotations

from msgspec import field

from volcano_py.api.meta import ApiObject, ApiType, Condition

API_VERSION = "scheduling.k8s.io/v1alpha2"

# Conditions of a PodGroup, and their reasons
POD_GROUP_SCHEDULED = "PodGroupScheduled"
DISRUPTION_TARGET = "DisruptionTarget"
SCHEDULED = "Scheduled"
UNSCHEDULABLE = "Unschedulable"
PREEMPTION_BY_SCHEDULER = "PreemptionByScheduler"

DISRUPTED_WHOLE = "PodGroup"
"""The disruptionMode of PodGroups whose pods are evicted together or not at all."""


class BasicPolicy(ApiType):
    """The pods are scheduled one by one."""


class GangPolicy(ApiType):
    min_count: int = 1


class SchedulingPolicy(ApiType):
    """Exactly one is set."""

    basic: BasicPolicy | None = None
    gang: GangPolicy | None = None


class TopologyConstraint(ApiType):
    """All pods of the group are on nodes with the same value of this label."""

    key: str = ""


class SchedulingConstraints(ApiType):
    topology: list[TopologyConstraint] | None = None


class PodGroupSpec(ApiType):
    scheduling_policy: SchedulingPolicy = field(default_factory=SchedulingPolicy)
    scheduling_constraints: SchedulingConstraints | None = None
    disruption_mode: str | None = None
    priority_class_name: str = ""
    priority: int | None = None


class PodGroupStatus(ApiType):
    conditions: list[Condition] | None = None


class PodGroup(ApiObject):
    api_version: str = API_VERSION
    kind: str = "PodGroup"
    spec: PodGroupSpec = field(default_factory=PodGroupSpec)
    status: PodGroupStatus = field(default_factory=PodGroupStatus)
