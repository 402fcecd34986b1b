"""GroupTree: a CompositePodGroup with the groups below it. Kubernetes: CompositePodGroup; Volcano has no such groups.

The pods of a tree are one job, and the pods of each PodGroup a sub-job of it. A PodGroup holds if it has its minimum,
and a composite group if enough of its children hold, level by level.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from volcano_py.api.gang import AnyGroup, CompositePodGroup

MOST_LEVELS = 4
"""The levels of a tree, as Kubernetes limits them."""


class GroupTree(NamedTuple):
    """A group, and the groups that name it as their parent, in the order in which they are tried."""

    group: AnyGroup
    below: tuple[GroupTree, ...]
    least: int
    """How many of its pods, or of its child groups, must be placed together."""

    @property
    def composite(self) -> bool:
        return isinstance(self.group, CompositePodGroup)

    @property
    def name(self) -> str:
        return self.group.metadata.name

    @property
    def topology_key(self) -> str:
        return self.group.spec.topology_key

    @property
    def levels(self) -> int:
        return 1 + max((child.levels for child in self.below), default=0)

    def least_pods(self) -> int:
        """The number of pods without which the group cannot hold."""
        if not self.composite:
            return self.least
        fewest = sorted(child.least_pods() for child in self.below)[: self.least]
        return sum(fewest) + self.least - len(fewest)  # a group that does not exist needs a pod, at least

    def pod_groups(self) -> Iterator[GroupTree]:
        """The PodGroups of the tree, depth first."""
        if not self.composite:
            yield self
        for child in self.below:
            yield from child.pod_groups()

    def all_groups(self) -> Iterator[GroupTree]:
        """The group and all below it, depth first."""
        yield self
        for child in self.below:
            yield from child.all_groups()

    def holds(self, has_minimum: Callable[[str], bool]) -> bool:
        """Whether the group holds. `has_minimum`: whether the PodGroup of this name has its minimum."""
        if not self.composite:
            return has_minimum(self.name)
        return sum(child.holds(has_minimum) for child in self.below) >= self.least
