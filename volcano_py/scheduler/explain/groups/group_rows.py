"""The groups of a native gang as rows: how many pods or child groups each needs and has. Not in Volcano.

`vcctl explain` makes them of a model, and the dashboard of watched objects: both have the tree, and count its pods.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from volcano_py.scheduler.model.jobs.group_tree import GroupTree


class GroupMembers(NamedTuple):
    """The pods that name a PodGroup: how many exist, and the nodes of those that have one."""

    pods: int = 0
    nodes: tuple[str, ...] = ()


class GroupRow(NamedTuple):
    """A group, depth first. `need`, `placed` and `exist` count pods of a PodGroup, and children of a CompositePodGroup:
    those that must have nodes together, those that have them, and those that exist with enough pods."""

    kind: str
    """PodGroup or CompositePodGroup."""
    name: str
    depth: int
    need: int
    placed: int
    exist: int
    topology_key: str
    domain: str
    """The values of the label that the nodes of its pods have; several are a mistake."""
    state: str
    """placed, waits (for nodes), or incomplete: pods or groups are missing."""

    @property
    def counts(self) -> str:
        """The counts in words: `1 of 2 groups`, `3 of 4 pods, 2 exist`."""
        noun = "pod" if self.kind == "PodGroup" else "group"
        text = f"{self.placed} of {self.need} {noun}{'' if self.need == 1 else 's'}"
        return text if self.exist >= self.need else f"{text}, {self.exist} {'exists' if self.exist == 1 else 'exist'}"


def group_rows(
    tree: GroupTree, members: Callable[[str], GroupMembers], label: Callable[[str, str], str], depth: int = 0
) -> list[GroupRow]:
    """The rows of a tree, or of one PodGroup. `members`: of a PodGroup by name. `label`: the value of a label of a
    node."""

    def places(name: str) -> int:
        return len(members(name).nodes)

    by_name = {leaf.name: leaf for leaf in tree.pod_groups()}
    placed = tree.holds(lambda name: places(name) >= by_name[name].least)
    complete = tree.holds(lambda name: members(name).pods >= by_name[name].least)
    if tree.composite:
        have = sum(child.holds(lambda name: places(name) >= by_name[name].least) for child in tree.below)
        exist = sum(child.holds(lambda name: members(name).pods >= by_name[name].least) for child in tree.below)
    else:
        have, exist = places(tree.name), members(tree.name).pods
    nodes = [node for name in by_name for node in members(name).nodes]
    row = GroupRow(
        "CompositePodGroup" if tree.composite else "PodGroup",
        tree.name,
        depth,
        tree.least,
        have,
        exist,
        tree.topology_key,
        _domain(tree.topology_key, nodes, label),
        "placed" if placed else "waits" if complete else "incomplete",
    )
    return [row, *(found for child in tree.below for found in group_rows(child, members, label, depth + 1))]


def _domain(key: str, nodes: Collection[str], label: Callable[[str, str], str]) -> str:
    return ", ".join(sorted({label(node, key) or f"{node} has no label" for node in nodes})) if key else ""
