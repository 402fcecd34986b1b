"""Gangs of Kubernetes' PodGroups. Kubernetes: GangScheduling (feature gate of the same name)."""

from __future__ import annotations

from collections.abc import Sequence

from volcano_py.api.gang import PodGroup
from volcano_py.scheduler.profiles.plugin_api.cycle_state import CycleState
from volcano_py.scheduler.profiles.plugin_api.events import GROUPS, PODS, ActionType, Interest
from volcano_py.scheduler.profiles.plugin_api.extension_points import Permit, PreEnqueue
from volcano_py.scheduler.profiles.plugin_api.handle import Handle
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.plugin_api.status import SUCCESS, Code, Status, unresolvable

_TIMEOUT = 300.0
WAITING = "waiting for minCount pods from a gang to be scheduled"
_TOO_FEW = unresolvable("waiting for minCount pods from a gang to appear in scheduling queue")


class GangScheduling(PreEnqueue, Permit):
    """A member waits for its group and for enough members; it is bound only when enough of them have a node."""

    name = "GangScheduling"

    def __init__(self, handle: Handle) -> None:
        self._cluster = handle.cluster
        self._tree = handle.tree
        self._whole = handle.release.whole_groups

    def pre_enqueue(self, pod: PodInfo) -> Status:
        if not pod.group:
            return SUCCESS
        if self._whole:
            root = self._tree.root_of(pod.group)
            return SUCCESS if root is not None and self._tree.is_ready(root) else _TOO_FEW
        group = self._cluster.groups.get(pod.group)
        if group is None:
            name = pod.group.partition("/")[2]
            return unresolvable(f'waiting for pods\'s pod group "{name}" to appear in scheduling queue')
        gang = group.spec.scheduling_policy.gang
        if gang is not None and len(self._cluster.members.get(pod.group, {})) < gang.min_count:
            return _TOO_FEW
        return SUCCESS

    def permit(self, state: CycleState, pod: PodInfo, node: str) -> tuple[Status, float]:
        group = self._cluster.groups.get(pod.group)
        gang = group.spec.scheduling_policy.gang if group is not None else None
        if self._whole or gang is None or self._cluster.placed(pod.group) >= gang.min_count:
            return SUCCESS, 0.0
        return Status(Code.WAIT, (WAITING,)), _TIMEOUT

    def interests(self) -> Sequence[Interest]:
        return (Interest(PODS, ActionType.ADD, self._member), Interest(GROUPS, ActionType.ADD, self._group))

    def _member(self, pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> bool:
        return new is not None and bool(pod.group) and new.group == pod.group

    def _group(self, pod: PodInfo, old: PodGroup | None, new: PodGroup | None) -> bool:
        return new is not None and bool(pod.group) and new.key == pod.group
