"""Features that a node declares. Kubernetes: NodeDeclaredFeatures. Not implemented: it accepts all nodes."""

from __future__ import annotations

from collections.abc import Collection

from volcano_py.scheduler.profiles.plugin_api.cycle_state import CycleState
from volcano_py.scheduler.profiles.plugin_api.extension_points import PreFilter
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.plugin_api.status import SKIP, Status


class NodeDeclaredFeatures(PreFilter):
    name = "NodeDeclaredFeatures"

    def pre_filter(self, state: CycleState, pod: PodInfo) -> tuple[Collection[str] | None, Status]:
        return None, SKIP
