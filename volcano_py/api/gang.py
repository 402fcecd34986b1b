"""Kubernetes' own PodGroup, scheduling.k8s.io/v1alpha2, as far as the scheduler reads it.

Not to be confused with Volcano's, in `volcano_py.api.scheduling`.
"""

from __future__ import annotations

from msgspec import field

from volcano_py.api.meta import ApiObject, ApiType


class GangPolicy(ApiType):
    min_count: int = 1


class SchedulingPolicy(ApiType):
    """Exactly one is set; without `gang` the pods are scheduled one by one."""

    gang: GangPolicy | None = None


class PodGroupSpec(ApiType):
    scheduling_policy: SchedulingPolicy = field(default_factory=SchedulingPolicy)


class PodGroup(ApiObject):
    api_version: str = "scheduling.k8s.io/v1alpha2"
    kind: str = "PodGroup"
    spec: PodGroupSpec = field(default_factory=PodGroupSpec)
