"""Tree: which groups belong together. Kubernetes: the group states of the scheduler's cache and queue.

Children name their parent. A group whose parents are not all there is incomplete: its pods wait for the objects.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from volcano_py.api.gang import AnyGroup, CompositePodGroup, PodGroup
from volcano_py.scheduler.model.jobs.group_names import COMPOSITE
from volcano_py.scheduler.profiles.cluster import ProfileCluster
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo


class GroupId(NamedTuple):
    composite: bool
    key: str
    """`namespace/name`."""


class Tree:
    """The groups of a cluster, as last observed."""

    def __init__(self, cluster: ProfileCluster) -> None:
        self._cluster = cluster
        self._below: dict[GroupId, dict[GroupId, None]] = {}
        """The groups that name a parent, which may not exist."""

    def changed(self, old: AnyGroup | None, new: AnyGroup | None) -> None:
        """A group was created (`old` is None), has changed, or was deleted (`new` is None)."""
        for group in (old, new):
            above = parent_of(group) if group is not None else None
            if group is not None and above is not None:
                siblings = self._below.setdefault(above, {})
                at = GroupId(isinstance(group, CompositePodGroup), group.key)
                if group is new:
                    siblings[at] = None
                else:
                    siblings.pop(at, None)
                if not siblings:
                    del self._below[above]

    def group(self, at: GroupId) -> AnyGroup | None:
        of_session = self._cluster.model.native_groups
        if at.composite:
            return self._cluster.composites.get(at.key) or of_session.get(COMPOSITE, at.key)
        return self._cluster.groups.get(at.key) or of_session.pod_group(at.key)

    def root_of(self, key: str) -> GroupId | None:
        """The root above a PodGroup; None while it or a group above it does not exist."""
        for at, group in self.ancestors(key):
            if parent_of(group) is None:
                return at
        return None

    def ancestors(self, key: str) -> Iterator[tuple[GroupId, AnyGroup]]:
        """A PodGroup and the groups above it, as far as they exist."""
        at: GroupId | None = GroupId(False, key)
        seen: set[GroupId] = set()
        while at is not None and at not in seen:
            seen.add(at)
            group = self.group(at)
            if group is None:
                return
            yield at, group
            at = parent_of(group)

    def children(self, of: GroupId) -> list[GroupId]:
        """The groups that name a CompositePodGroup as their parent, in the order in which they are tried."""
        groups = ((at, self.group(at)) for at in self._below.get(of, ()))
        rows = ((g.metadata.creation_timestamp or "", g.metadata.name, at) for at, g in groups if g is not None)
        return [at for _, _, at in sorted(rows)]

    def pod_groups(self, root: GroupId) -> list[str]:
        """The keys of the PodGroups of a tree, depth first."""
        if not root.composite:
            return [root.key]
        return [key for child in self.children(root) for key in self.pod_groups(child)]

    def members(self, key: str) -> list[PodInfo]:
        """All pods of a PodGroup, waiting or on nodes."""
        return list(self._cluster.members.get(key, {}).values())

    def on_nodes(self, at: GroupId) -> Iterator[tuple[PodInfo, str]]:
        """The pods of a tree that are bound or assumed, with their nodes."""
        tasks = self._cluster.model.tasks
        for key in self.pod_groups(at):
            known = self._cluster.members.get(key, {})
            of_session = [task.pod.key for task in self._cluster.model.native_groups.tasks(key)]
            for pod in dict.fromkeys((*known, *of_session)):
                if self._cluster.is_placed(pod):
                    yield self._cluster.info(tasks[pod].pod), tasks[pod].node or ""

    def least(self, at: GroupId) -> int:
        """The number of pods, or of child groups, without which a group is not started; 1 if it does not exist."""
        group = self.group(at)
        return least_of(group) if group is not None else 1

    def is_ready(self, at: GroupId) -> bool:
        """Whether enough pods exist, level by level, to try a tree."""
        group = self.group(at)
        if isinstance(group, PodGroup):
            return len(self._cluster.members.get(at.key, {})) >= least_of(group)
        if group is None:
            return False
        return sum(self.is_ready(child) for child in self._below.get(at, ())) >= least_of(group)


def parent_of(group: AnyGroup) -> GroupId | None:
    name = group.spec.parent_composite_pod_group_name
    return GroupId(True, f"{group.metadata.namespace}/{name}") if name else None


def least_of(group: AnyGroup) -> int:
    """The number of pods, or of child groups, without which the group is not started."""
    if isinstance(group, CompositePodGroup):
        composite = group.spec.scheduling_policy.gang
        return composite.min_group_count if composite is not None else 1
    gang = group.spec.scheduling_policy.gang
    return gang.min_count if gang is not None else 1


def priority_of(group: AnyGroup) -> int:
    return group.spec.priority or 0
