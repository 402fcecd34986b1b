"""The plugins for volumes, device claims and node features. They accept pods that use none of these; their rules are
not built yet. Kubernetes: VolumeRestrictions, NodeVolumeLimits, VolumeBinding, VolumeZone, DynamicResources,
NodeDeclaredFeatures."""

from __future__ import annotations

from collections.abc import Collection

from volcano_py.scheduler.profiles.cycle_state import CycleState
from volcano_py.scheduler.profiles.extension_points import PostFilter, PostFilterResult, PreFilter
from volcano_py.scheduler.profiles.pod_info import PodInfo
from volcano_py.scheduler.profiles.status import SKIP, Status, error, unschedulable


class NotBuilt(PreFilter):
    """Refuses pods with persistent volumes or device claims with an error, so that none is placed blindly."""

    def __init__(self, name: str) -> None:
        self.name = name

    def pre_filter(self, state: CycleState, pod: PodInfo) -> tuple[Collection[str] | None, Status]:
        spec = pod.pod.spec
        volumes = any(v.persistent_volume_claim or v.ephemeral for v in spec.volumes or ())
        if self.name == "DynamicResources" and spec.resource_claims:
            return None, error("profiles cannot allocate resource claims yet; use the scheduler volcano for this pod")
        if self.name == "VolumeBinding" and volumes:
            return None, error("profiles cannot bind volumes yet; use the scheduler volcano for this pod")
        return None, SKIP


class DynamicResources(NotBuilt, PostFilter):
    def post_filter(self, state: CycleState, pod: PodInfo, refused: dict[str, Status]) -> PostFilterResult:
        return PostFilterResult(unschedulable("no new claims to deallocate"))
