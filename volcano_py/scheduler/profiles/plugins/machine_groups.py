"""MachineGroups: the machines of a group run only pods of that group. Not in Kubernetes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from volcano_py.scheduler.profiles.cycle_state import CycleState
from volcano_py.scheduler.profiles.events import NODES, PODS, Action, Interest
from volcano_py.scheduler.profiles.extension_points import Filter
from volcano_py.scheduler.profiles.handle import Handle
from volcano_py.scheduler.profiles.node_info import NodeInfo
from volcano_py.scheduler.profiles.pod_info import PodInfo
from volcano_py.scheduler.profiles.status import SUCCESS, Status, unresolvable

QUEUE = "scheduling.volcano.sh/queue-name"
"""The annotation, or label, with a pod's queue."""
_PRIVATE = unresolvable("node(s) belonged to another machine group")
_NOT_OWN = unresolvable("node(s) didn't belong to the pod's machine group")


class Arguments(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    node_label: str = "volcano.sh/machine-group"
    """The label of nodes with the group that owns the node."""
    pod_label: str = "volcano.sh/machine-group"
    """The label of pods with the group for which they run; it has precedence over queue and namespace."""
    queues: dict[str, str] = {}
    """The group of the pods of each queue."""
    namespaces: dict[str, str] = {}
    """The group of the pods of each namespace."""
    spill: bool = False
    """Whether pods of a group may also run on nodes without a group."""


class MachineGroups(Filter):
    """A group's pods run on the group's nodes, and no other pods do."""

    name = "MachineGroups"

    def __init__(self, arguments: Arguments, handle: Handle) -> None:
        self._args = arguments

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        owner = node.labels.get(self._args.node_label, "")
        group = self.group_of(pod)
        if owner == group or (not owner and self._args.spill):
            return SUCCESS
        return _PRIVATE if owner else _NOT_OWN

    def interests(self) -> Sequence[Interest]:
        return (
            Interest(NODES, Action.ADD | Action.NODE_LABEL | Action.TAINT, self._node_helps),
            Interest(PODS, Action.POD_LABEL, _own),
        )

    def group_of(self, pod: PodInfo) -> str:
        """The group for which a pod runs; empty if it has none."""
        annotations = pod.pod.metadata.annotations or {}
        queue = annotations.get(QUEUE) or pod.labels.get(QUEUE, "")
        return (
            pod.labels.get(self._args.pod_label)
            or self._args.queues.get(queue)
            or self._args.namespaces.get(pod.namespace, "")
        )

    def _node_helps(self, pod: PodInfo, old: Any, new: Any) -> bool:
        return new is not None and self.filter(CycleState(), pod, NodeInfo(new)).ok


def _own(pod: PodInfo, old: Any, new: Any) -> bool:
    return new is not None and new.key == pod.key
