"""GroupedQueue: a scheduling queue in which a root group with all pods of its tree is one entry. Kubernetes:
backend/queue, with the feature gate GenericWorkload.

A pod whose group, or a group above it, does not exist is in no part of the queue. If one pod of a group is gated, the
group is. A rejected group comes back when its back-off is over, whatever happens.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Mapping

from volcano_py.scheduler.profiles.decisions import Decision
from volcano_py.scheduler.profiles.groups.tree import GroupId, Tree, priority_of
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.profile import Profile
from volcano_py.scheduler.profiles.queue import Place, QueuedPod, SchedulingQueue


class QueuedGroup(QueuedPod):
    """A waiting root group. `pod` stands for the group: a copy of its first pod with the group's priority."""

    entity = "podgroup"

    def __init__(self, root: GroupId, priority: int, first: QueuedPod) -> None:
        head = copy.copy(first.pod)
        head.key = f"{'composite ' if root.composite else 'group '}{root.key}"
        head.priority = priority
        super().__init__(head, first.since)
        self.root = root
        self.waiting: dict[str, QueuedPod] = {}
        self.size = 1
        """The number of its waiting pods when it was last rejected: later members do not change the back-off."""

    @property
    def count(self) -> int:
        return len(self.waiting)

    def pods(self) -> Iterable[QueuedPod]:
        return self.waiting.values()

    def longest(self, limit: float) -> float:
        return limit * math.sqrt(self.size)


class GroupedQueue(SchedulingQueue):
    def __init__(
        self,
        profiles: Mapping[str, Profile],
        initial: float,
        longest: float,
        early: bool,
        emit: Callable[[Decision], None],
        tree: Tree,
    ) -> None:
        super().__init__(profiles, initial, longest, early, emit)
        self._tree = tree
        self._groups: dict[GroupId, QueuedGroup] = {}
        self._in_group: dict[str, QueuedGroup] = {}
        """The group of each member in the queue."""
        self._incomplete: dict[str, QueuedPod] = {}
        """Pods that wait for the objects of their groups."""

    def __len__(self) -> int:
        return len(self._pods) - len(self._groups) + len(self._in_group) + len(self._incomplete)

    def __contains__(self, key: str) -> bool:
        return key in self._pods or key in self._in_group or key in self._incomplete

    def sizes(self) -> dict[str, int]:
        """With the pods whose groups do not exist. None is ever `pending`: no pod arrives during an attempt."""
        return {**super().sizes(), "incomplete": len(self._incomplete), "pending": 0}

    def add(self, pod: PodInfo, now: float) -> None:
        if pod.group:
            self._cause = "PodAdd"
            self._join(QueuedPod(pod, now), now)
        else:
            super().add(pod, now)

    def update(self, old: PodInfo, new: PodInfo, now: float) -> None:
        group = self._in_group.get(new.key)
        if new.key in self._incomplete:
            self._incomplete[new.key].pod = new
        elif group is None:
            super().update(old, new, now)
        else:
            group.waiting[new.key].pod = new
            if group.gated:
                self._cause = "PodUpdate"
                self._requeue(group, now)

    def delete(self, key: str) -> None:
        self._incomplete.pop(key, None)
        group = self._in_group.get(key)
        if group is None:
            super().delete(key)
        else:
            self._part(group, key)
            if group.gated and group.waiting:
                self._cause = "PodDelete"
                self._requeue(group, group.since)

    def activate(self, key: str, now: float) -> None:
        group = self._in_group.get(key)
        super().activate(key if group is None else group.pod.key, now)

    def reconsider(self, key: str, now: float) -> None:
        group = self._in_group.get(key)
        if group is None:
            super().reconsider(key, now)
        elif group.gated:
            self._cause = "ForceActivate"
            self._requeue(group, now)

    def groups_changed(self, now: float, *, fewer_needed: bool) -> None:
        """Groups were created or deleted, or have changed. `fewer_needed`: gated groups may be large enough now."""
        self._cause = "PodGroupUpdate"
        for group in list(self._groups.values()):
            for key, member in list(group.waiting.items()):
                if self._tree.root_of(member.pod.group) != group.root:
                    self._part(group, key)
                    self._incomplete[key] = member
            if group.gated and fewer_needed and group.waiting:
                self._requeue(group, now)
        for key, member in list(self._incomplete.items()):
            if self._tree.root_of(member.pod.group) is not None:
                del self._incomplete[key]
                self._join(member, now)

    # ---- attempts of groups -----------------------------------------------------------------------------

    def rejected(self, group: QueuedGroup, members: Iterable[QueuedPod], now: float, *, error: bool) -> None:
        """Return the members of a group whose attempt has failed."""
        self._cause = "ScheduleAttemptFailure"
        if error:
            group.errors += 1
        else:
            group.rejections, group.errors = group.rejections + 1, 0
        group.since = now
        self._return(group, members, now)

    def left_over(self, group: QueuedGroup, members: Iterable[QueuedPod], now: float, *, tried: bool) -> None:
        """Return the members that a successful attempt has not placed: they are tried again at once. `tried`: one of
        them was rejected."""
        self._cause = "ScheduleAttemptFailure"
        group.errors = group.rejections = 0
        if not tried:
            group.since = now
        self._return(group, members, now)

    def _return(self, group: QueuedGroup, members: Iterable[QueuedPod], now: float) -> None:
        for member in members:
            member.since = now
            group.waiting[member.pod.key] = member
            self._in_group[member.pod.key] = group
        for key, member in list(group.waiting.items()):
            if self._tree.root_of(member.pod.group) != group.root:
                self._part(group, key)
                self._incomplete[key] = member
        if group.waiting:
            group.size = len(group.waiting)
            self._groups[group.root] = group
            self._insert(group)
            self._requeue(group, now)

    # ---- parts ------------------------------------------------------------------------------------------

    def _join(self, member: QueuedPod, now: float) -> None:
        root = self._tree.root_of(member.pod.group)
        found = self._tree.group(root) if root is not None else None
        if root is None or found is None:
            self._incomplete[member.pod.key] = member
            return
        group = self._groups.get(root)
        new = group is None
        if group is None:
            group = self._groups[root] = QueuedGroup(root, priority_of(found), member)
        group.waiting[member.pod.key] = member
        self._in_group[member.pod.key] = group
        entering: Iterable[QueuedPod] = (member,)
        if new:
            self._insert(group)
            self._enter(group, Place.ACTIVE)
        elif group.gated:
            entering = group.pods()
            self._requeue(group, now)
        else:
            self._enter_after(group, entering, group.place)
        if not group.gated:
            for waiting in entering:
                self.on_enter(waiting.pod)

    def _part(self, group: QueuedGroup, key: str) -> None:
        """A member leaves its group."""
        del self._in_group[key]
        del group.waiting[key]
        if not group.waiting:
            self._remove(group)

    def _remove(self, queued: QueuedPod) -> None:
        super()._remove(queued)
        if isinstance(queued, QueuedGroup):
            self._groups.pop(queued.root, None)
            for key in queued.waiting:
                self._in_group.pop(key, None)

    def _backoff_ended(self, queued: QueuedPod) -> None:
        if self._early or not isinstance(queued, QueuedGroup):
            super()._backoff_ended(queued)
        else:  # Kubernetes evaluates the gates here, unless SchedulerPopFromBackoffQ is on
            self._enter(queued, Place.ACTIVE)

    def _requeue(self, queued: QueuedPod, now: float) -> None:
        if isinstance(queued, QueuedGroup):
            queued.rejected_by.clear()
            self._enter(queued, Place.ERRORS if self._backing_off(queued, now) else Place.ACTIVE)
        else:
            super()._requeue(queued, now)
