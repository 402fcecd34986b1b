"""How much of a pod's images the nodes already have. kube-scheduler: ImageLocality."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate

import numpy as np

from volcano_py.api.core import Node
from volcano_py.scheduler.rules.arrays import Ints

_MIB = 1024 * 1024
_LOWEST = 23 * _MIB
_HIGHEST = 1000 * _MIB
"""The thresholds: sizes below the first one count nothing, those above the second one, for each container, no more."""
_MOST = 100


class NodeImages:
    """The images of nodes, in their order. An image has the size that the first node states: the first of
    `as_they_came`, by default of `nodes`."""

    def __init__(self, nodes: Sequence[Node], as_they_came: Iterable[Node] | None = None) -> None:
        sizes: dict[str, int] = {}
        holders: dict[str, list[int]] = {}
        for node in as_they_came or ():
            for image in node.status.images or ():
                for name in image.names or ():
                    sizes.setdefault(name, image.size_bytes)
        for column, node in enumerate(nodes):
            for name, size in {n: i.size_bytes for i in node.status.images or () for n in i.names or ()}.items():
                sizes.setdefault(name, size)
                holders.setdefault(name, []).append(column)
        self._holders = holders
        self._nodes = len(nodes)
        self._sizes = sizes
        self.worth = {name: int(sizes[name] * (len(held) / len(nodes))) for name, held in holders.items()}
        """What an image adds on a node that has it: its size, scaled by the part of the nodes that have it."""

    def __bool__(self) -> bool:
        return bool(self.worth)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NodeImages) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def sums(self, images: Sequence[str]) -> Ints:
        """What the images of a pod add on each node."""
        found = np.zeros(self._nodes, dtype=np.int64)
        for image in images:
            if image in self.worth:
                found[self._holders[image]] += self.worth[image]
        return found

    def sums_when_added(self, images: Sequence[str]) -> Ints:
        """The same where a node counts only the nodes that had an image when it was added itself. Volcano: the image
        states of its cache."""
        found = np.zeros(self._nodes, dtype=np.int64)
        for image in images:
            columns = self._holders.get(image, ())
            parts = (count / self._nodes for count in accumulate(1 for _ in columns))
            for column, part in zip(columns, parts, strict=True):
                found[column] += int(self._sizes[image] * part)
        return found


def scores(sums: Ints, containers: int) -> Ints:
    """From 0 to 100 for the sums of a pod with this number of containers."""
    top = _HIGHEST * max(containers, 1)
    found: Ints = _MOST * (np.clip(sums, _LOWEST, top) - _LOWEST) // (top - _LOWEST)
    return found
