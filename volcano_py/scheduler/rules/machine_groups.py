"""Reserved machines: the machines of a group run only pods of that group. Not in Volcano and not in Kubernetes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from volcano_py.api.core import Node
from volcano_py.scheduler.rules.arrays import Codes

LABEL = "volcano.sh/machine-group"
"""The label of nodes and of pods, if nothing else is configured."""


class GroupRejection(IntEnum):
    """The codes of the filter; 0 accepts."""

    PRIVATE = 1
    NOT_OWN = 2


TEXTS = {
    GroupRejection.PRIVATE: "node(s) belonged to another machine group",
    GroupRejection.NOT_OWN: "node(s) didn't belong to the pod's machine group",
}


class Membership(NamedTuple):
    """Which group a pod has."""

    pod_label: str
    """The label of pods with their group; it has precedence over queue and namespace."""
    queues: Mapping[str, str]
    """The group of the pods of each queue."""
    namespaces: Mapping[str, str]
    """The group of the pods of each namespace."""

    def group_of(self, labels: Mapping[str, str], queue: str, namespace: str) -> str:
        """The group for which a pod runs; empty: none."""
        return labels.get(self.pod_label) or self.queues.get(queue) or self.namespaces.get(namespace, "")


def owner(node: Node, label: str) -> str:
    """The group that owns a node; empty: none."""
    return (node.metadata.labels or {}).get(label, "")


def rejection(group: str, owner: str, spill: bool) -> GroupRejection | None:
    """Why a node of this owner rejects a pod of the group. `spill`: whether pods of a group may also run on nodes
    without a group."""
    if owner == group or (not owner and spill):
        return None
    return GroupRejection.PRIVATE if owner else GroupRejection.NOT_OWN


class NodeOwners:
    """The groups that own many nodes: each group once, and the group of each node."""

    def __init__(self, nodes: Iterable[Node], label: str) -> None:
        numbers: dict[str, int] = {}
        self._of_node = np.array([numbers.setdefault(owner(n, label), len(numbers)) for n in nodes], dtype=np.intp)
        self._owners = list(numbers)

    def codes(self, group: str, spill: bool) -> Codes:
        """`rejection` of every node."""
        found = np.array([rejection(group, name, spill) or 0 for name in self._owners], dtype=np.int8)
        codes: Codes = found[self._of_node]
        return codes
