"""GroupTree: a CompositePodGroup with the groups below it. Kubernetes: CompositePodGroup; Volcano has no such groups.

The pods of a tree are one job, and the pods of each PodGroup a sub-job of it. A PodGroup holds if it has its minimum,
and a composite group if enough of its children hold, level by level.
"""

from __future__ import annotations

from bisect import bisect_left
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
    fewest: tuple[int, ...] = ()
    """The numbers of pods without which the groups below it cannot hold, sorted."""
    depths: tuple[int, ...] = ()
    """The levels of the groups below it, sorted."""

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
        return 1 + (self.depths[-1] if self.depths else 0)

    def least_pods(self) -> int:
        """The number of pods without which the group cannot hold."""
        if not self.composite:
            return self.least
        fewest = self.fewest[: self.least]
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
    trees = tuple(tree_of(child, children, above + 1) for child in below)
    fewest, depths = sorted(t.least_pods() for t in trees), sorted(t.levels for t in trees)
    return GroupTree(group, trees, least, tuple(fewest), tuple(depths))


def with_group(tree: GroupTree, group: AnyGroup) -> GroupTree:
    """The tree with another state of its root. Raises ValueError if a field of it is invalid."""
    return tree._replace(group=group, least=least_of(group))


def with_child(tree: GroupTree, old: AnyGroup | None, new: GroupTree | None) -> GroupTree:
    """The tree without a group below its root, or with another one, or both."""
    below, fewest, depths = tree.below, tree.fewest, tree.depths
    if old is not None:
        i = bisect_left(below, _order(old), key=_order_of)
        if i < len(below) and _order_of(below[i]) == _order(old):
            fewest = _without(fewest, below[i].least_pods())
            depths = _without(depths, below[i].levels)
            below = below[:i] + below[i + 1 :]
    if new is not None:
        i = bisect_left(below, _order_of(new), key=_order_of)
        below = (*below[:i], new, *below[i:])
        fewest, depths = _with(fewest, new.least_pods()), _with(depths, new.levels)
    return tree._replace(below=below, fewest=fewest, depths=depths)


def _with(numbers: tuple[int, ...], number: int) -> tuple[int, ...]:
    i = bisect_left(numbers, number)
    return (*numbers[:i], number, *numbers[i:])


def _without(numbers: tuple[int, ...], number: int) -> tuple[int, ...]:
    i = bisect_left(numbers, number)
    return numbers[:i] + numbers[i + 1 :]


def _order_of(tree: GroupTree) -> tuple[str, str, bool]:
    return _order(tree.group)


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
