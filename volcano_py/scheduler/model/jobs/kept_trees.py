"""KeptTrees: the trees of CompositePodGroups, which follow each change of a group. Volcano has no such groups.

A change of a group replaces the trees above it, and no others: a tree that grows by one PodGroup after another costs as
much for the last one as for the first. Trees with an invalid group, and those with too many levels, are not kept, nor
are the trees above them: they are derived when they are read.
"""

from __future__ import annotations

from collections.abc import Mapping

from volcano_py.api.gang import AnyGroup, CompositePodGroup
from volcano_py.scheduler.model.jobs.group_names import COMPOSITE
from volcano_py.scheduler.model.jobs.group_tree import (
    MOST_ABOVE,
    MOST_LEVELS,
    GroupTree,
    parent_of,
    tree_of,
    with_child,
    with_group,
)

GroupKey = tuple[str, str]
"""The kind in the model, and the key, `namespace/name`."""


class KeptTrees:
    """`groups`: all groups. `below`: the groups that name a CompositePodGroup as their parent, by its key. Both are
    current when `changed` is called.

    Of a tree that is kept, the trees of all CompositePodGroups in it are kept.
    """

    def __init__(self, groups: Mapping[GroupKey, AnyGroup], below: Mapping[str, Mapping[GroupKey, None]]) -> None:
        self._groups = groups
        self._below = below
        self._kept: dict[str, GroupTree] = {}
        """By the key of a CompositePodGroup."""

    def of(self, key: str) -> GroupTree:
        """A CompositePodGroup with all below it. Raises ValueError if a field of one of them is invalid."""
        found = self._kept.get(key)
        if found is None:
            found = tree_of(self._groups[COMPOSITE, key], self._children)
            self._keep(found)
        return found

    def changed(self, old: AnyGroup | None, new: AnyGroup | None) -> None:
        """A group was created (`old` is None), has changed, or was deleted (`new` is None)."""
        group = new if new is not None else old
        kept = self._kept.pop(group.metadata.key, None) if isinstance(group, CompositePodGroup) else None
        if old is not None and (new is None or parent_of(old) != parent_of(new)):
            self._replace(parent_of(old), old, None)
            old = None
        if new is None:
            return
        node = self._node(new, kept)
        if node is None:
            self._drop(parent_of(new))
        else:
            self._replace(parent_of(new), old, node)

    def _node(self, group: AnyGroup, kept: GroupTree | None) -> GroupTree | None:
        """The tree of a group, whose groups below are those of `kept`; None if it cannot be kept."""
        try:
            if not isinstance(group, CompositePodGroup):
                return tree_of(group, self._children)
            if kept is not None:
                found = self._kept[group.metadata.key] = with_group(kept, group)
                return found
            found = self.of(group.metadata.key)
        except ValueError:
            return None
        return found if found.levels <= MOST_LEVELS else None

    def _replace(self, parent: str, old: AnyGroup | None, new: GroupTree | None) -> None:
        """Replace a group below a parent, and so on upwards."""
        while parent:
            before = self._kept.get(parent)
            if before is None:
                return  # nor are the trees above it
            after = with_child(before, old, new)
            if after.levels > MOST_LEVELS:
                self._drop(parent)
                return
            self._kept[parent] = after
            old, new = before.group, after
            parent = parent_of(before.group)

    def _drop(self, parent: str) -> None:
        """Keep no tree from a parent upwards."""
        for _ in range(MOST_ABOVE):
            kept = self._kept.pop(parent, None)
            if kept is None:
                return
            parent = parent_of(kept.group)

    def _keep(self, tree: GroupTree) -> None:
        """Keep a tree, or those in it that have few enough levels."""
        for each in tree.all_groups():
            if each.composite and each.levels <= MOST_LEVELS:
                self._kept[each.group.metadata.key] = each

    def _children(self, key: str) -> list[AnyGroup]:
        return [self._groups[child] for child in self._below.get(key, ())]
