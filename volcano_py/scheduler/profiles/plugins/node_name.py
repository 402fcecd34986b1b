"""Rejects all nodes except the one that a pod names. Kubernetes: NodeName."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from volcano_py.scheduler.framework.search.node_rules import STATIC
from volcano_py.scheduler.profiles.columns import AnyColumns
from volcano_py.scheduler.profiles.plugin_api.cycle_state import CycleState
from volcano_py.scheduler.profiles.plugin_api.events import NODES, ActionType, Interest
from volcano_py.scheduler.profiles.plugin_api.extension_points import Filter
from volcano_py.scheduler.profiles.plugin_api.node_info import NodeInfo
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.plugin_api.status import SUCCESS, Status, unresolvable
from volcano_py.scheduler.rules.arrays import Bools

_OTHER = unresolvable("node(s) didn't match the requested node name")


class NodeName(Filter):
    name = "NodeName"
    scope = STATIC

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return SUCCESS if pod.node in ("", node.name) else _OTHER

    def filter_columns(self, pod: PodInfo, nodes: AnyColumns) -> Bools | None:
        return np.ones(len(nodes), dtype=np.bool_) if not pod.node else None

    def interests(self) -> Sequence[Interest]:
        return (Interest(NODES, ActionType.ADD | ActionType.TAINT),)
