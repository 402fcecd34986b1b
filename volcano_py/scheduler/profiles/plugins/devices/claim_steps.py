"""The common part of VolumeBinding and DynamicResources: Reserve adds steps to the ledger of the model, Unreserve
removes them, and PreBind marks them to be written before the binding. Kubernetes: both plugins have assume caches of
their own.
"""

from __future__ import annotations

from volcano_py.scheduler.profiles.attempts.claims import Claims
from volcano_py.scheduler.profiles.plugin_api.cycle_state import CycleState
from volcano_py.scheduler.profiles.plugin_api.extension_points import PreBind, Reserve
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.plugin_api.status import SUCCESS, Status


class ClaimSteps(Reserve, PreBind):
    """A plugin that reserves for claims; its `reserve` calls `Claims.reserve`."""

    _claims: Claims

    def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        self._claims.release(pod, self.name)

    def pre_bind(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        self._claims.write(pod, self.name)
        return SUCCESS
