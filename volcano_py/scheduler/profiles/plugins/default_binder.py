"""Writes the binding. Kubernetes: DefaultBinder."""

from __future__ import annotations

from volcano_py.scheduler.profiles.plugin_api.cycle_state import CycleState
from volcano_py.scheduler.profiles.plugin_api.extension_points import Binder
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.plugin_api.status import SUCCESS, Status


class DefaultBinder(Binder):
    """Binds every pod; the caller of the core sends the request, which it gets as a decision."""

    name = "DefaultBinder"

    def bind(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        return SUCCESS
