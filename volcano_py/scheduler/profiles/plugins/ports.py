"""Host ports, for profiles. Kubernetes: NodePorts."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from volcano_py.scheduler.framework.search.node_rules import LOCAL
from volcano_py.scheduler.profiles.plugin_api.cycle_state import CycleState
from volcano_py.scheduler.profiles.plugin_api.events import NODES, PODS, ActionType, Interest
from volcano_py.scheduler.profiles.plugin_api.extension_points import Filter, PreFilter
from volcano_py.scheduler.profiles.plugin_api.node_info import NodeInfo
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.plugin_api.status import SKIP, SUCCESS, Status, unschedulable
from volcano_py.scheduler.rules.ports import conflict

_IN_USE = unschedulable("node(s) didn't have free ports for the requested pod ports")


class NodePorts(PreFilter, Filter):
    name = "NodePorts"
    scope = LOCAL

    def pre_filter(self, state: CycleState, pod: PodInfo) -> tuple[Collection[str] | None, Status]:
        return None, SUCCESS if pod.ports else SKIP

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return _IN_USE if any(conflict(pod.ports, other.ports) for other in node.with_ports.values()) else SUCCESS

    def interests(self) -> Sequence[Interest]:
        return (
            Interest(PODS, ActionType.DELETE, self._pod_helps),
            Interest(NODES, ActionType.ADD | ActionType.TAINT),
        )

    def _pod_helps(self, pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> bool:
        return old is not None and bool(old.node) and conflict(pod.ports, old.ports)
