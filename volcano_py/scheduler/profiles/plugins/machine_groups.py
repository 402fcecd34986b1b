"""MachineGroups: the machines of a group run only pods of that group. Not in Kubernetes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from volcano_py.api import names
from volcano_py.scheduler.framework.search.node_rules import Codes
from volcano_py.scheduler.profiles.columns import Columns
from volcano_py.scheduler.profiles.plugin_api.cycle_state import CycleState
from volcano_py.scheduler.profiles.plugin_api.events import NODES, PODS, ActionType, Interest
from volcano_py.scheduler.profiles.plugin_api.extension_points import Filter
from volcano_py.scheduler.profiles.plugin_api.handle import Handle
from volcano_py.scheduler.profiles.plugin_api.node_info import NodeInfo
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.plugin_api.status import SUCCESS, Status, unresolvable
from volcano_py.scheduler.rules import machine_groups as rule

_REJECTED = {code: unresolvable(text) for code, text in rule.TEXTS.items()}
_STATUSES = [_REJECTED[code] for code in rule.GroupRejection]


class MachineGroupsArguments(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    node_label: str = rule.LABEL
    """The label of nodes with the group that owns the node."""
    pod_label: str = rule.LABEL
    """The label of pods with the group for which they run; it has precedence over queue and namespace."""
    queues: dict[str, str] = {}
    """The group of the pods of each queue."""
    namespaces: dict[str, str] = {}
    """The group of the pods of each namespace."""
    spill: bool = False
    """Whether pods of a group may also run on nodes without a group."""


class ProfileMachineGroups(Filter):
    """A group's pods run on the group's nodes, and no other pods do."""

    name = "MachineGroups"

    def __init__(self, arguments: MachineGroupsArguments, handle: Handle) -> None:
        self._args = arguments
        self._membership = rule.Membership(arguments.pod_label, arguments.queues, arguments.namespaces)
        self._cluster = handle.cluster
        self._owners: tuple[Columns, int, rule.NodeOwners] | None = None
        """The owners of the nodes of these columns, in this generation."""

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        owner = rule.owner(node.node, self._args.node_label)
        found = rule.rejection(self.group_of(pod), owner, self._args.spill)
        return SUCCESS if found is None else _REJECTED[found]

    def filter_codes(self, state: CycleState, pod: PodInfo, nodes: Columns) -> tuple[Codes, Sequence[Status]]:
        known = self._owners
        if known is None or known[0] is not nodes or known[1] != nodes.generation:
            owners = rule.NodeOwners((info.node for info in nodes.infos), self._args.node_label)
            known = self._owners = nodes, nodes.generation, owners
        return known[2].codes(self.group_of(pod), self._args.spill), _STATUSES

    def interests(self) -> Sequence[Interest]:
        return (
            Interest(NODES, ActionType.ADD | ActionType.NODE_LABEL | ActionType.TAINT, self._node_helps),
            Interest(PODS, ActionType.POD_LABEL, _own),
        )

    def group_of(self, pod: PodInfo) -> str:
        """The group for which a pod runs; empty if it has none."""
        return self._membership.group_of(pod.labels, self._queue_of(pod), pod.namespace)

    def _queue_of(self, pod: PodInfo) -> str:
        """The queue of the pod's PodGroup; of a pod without one, its annotation, or label."""
        annotations = pod.pod.metadata.annotations or {}
        of_job = self._cluster.queue_of(pod)
        return of_job or annotations.get(names.POD_QUEUE_NAME) or pod.labels.get(names.POD_QUEUE_NAME, "")

    def _node_helps(self, pod: PodInfo, old: Any, new: Any) -> bool:
        return new is not None and self.filter(CycleState(), pod, NodeInfo(new)).ok


def _own(pod: PodInfo, old: Any, new: Any) -> bool:
    return new is not None and new.key == pod.key
