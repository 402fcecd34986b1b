"""GroupTree: a CompositePodGroup with the groups below it. Kubernetes: CompositePodGroup; Volcano has no such groups.

The pods of a tree are one job, and the pods of each PodGroup a sub-job of it. A PodGroup holds if it has its minimum,
and a composite group if enough of its children hold, level by level.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from volcano_py.api.gang import AnyGroup, CompositePodGroup, GangPolicy
from volcano_py.scheduler.model.jobs.group_names import COMPOSITE, NATIVE

MOST_LEVELS = 4
"""The levels of a tree, as Kubernetes limits them."""
MOST_ABOVE = 32
"""How many groups above one are followed. More are as good as none: a tree has four levels, and each change of a group
would cost as much as the chain is long."""


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


def tree_of(group: AnyGroup, children: Callable[[str], Iterable[AnyGroup]], above: int = 0) -> GroupTree:
    """A group with all below it. `children`: the groups that name the CompositePodGroup with this key as their parent.
    Raises ValueError if a field of one of them is invalid."""
    composite = isinstance(group, CompositePodGroup)
    kind, meta = COMPOSITE if composite else NATIVE, group.metadata
    if above > MOST_ABOVE:
        raise ValueError(f"{kind}/{meta.name}: {above} groups are above it; use at most {MOST_LEVELS} levels")
    try:
        least = least_of(group)
    except ValueError as error:
        raise ValueError(f"{kind}/{meta.name}: {error}") from None
    below = sorted(children(meta.key), key=_order) if composite else ()
    return GroupTree(group, tuple(tree_of(child, children, above + 1) for child in below), least)


def _order(group: AnyGroup) -> tuple[str, str, bool]:
    """The order in which children are tried: by creation, then by name."""
    return group.metadata.creation_timestamp or "", group.metadata.key, not isinstance(group, CompositePodGroup)


def parent_of(group: AnyGroup) -> str:
    """The key of the CompositePodGroup that a group names as its parent, or ""."""
    name = group.spec.parent_composite_pod_group_name
    return f"{group.metadata.namespace}/{name}" if name else ""


def least_of(group: AnyGroup) -> int:
    """How many pods, or child groups, must be placed together. Raises ValueError if a field is invalid."""
    policy = group.spec.scheduling_policy
    if (policy.gang is None) == (policy.basic is None):
        raise ValueError("spec.schedulingPolicy: set exactly one of basic and gang")
    if policy.gang is None:
        least, field = 1, ""
    elif isinstance(policy.gang, GangPolicy):
        least, field = policy.gang.min_count, "minCount"
    else:
        least, field = policy.gang.min_group_count, "minGroupCount"
    if least < 1:
        raise ValueError(f"spec.schedulingPolicy.gang.{field}: {least}; use 1 or more")
    constraints = group.spec.scheduling_constraints
    topology = constraints.topology if constraints is not None else None
    if topology and len(topology) > 1:
        raise ValueError(f"spec.schedulingConstraints.topology: {len(topology)} constraints; use one")
    return least
