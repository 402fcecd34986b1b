"""Dominant resource fairness in a tree of queues. Volcano: drf with hierarchy (H-DRF).

A queue's position is its annotation `volcano.sh/hierarchy` (`root/eng/dev`), with the weight of each level in
`volcano.sh/hierarchy-weights` (`1/2/8`). Jobs are the leaves.
"""

from __future__ import annotations

from volcano_py.api import names
from volcano_py.scheduler.model.queue import Queue
from volcano_py.scheduler.model.resource import Resource, share


class FairNode:
    """A queue on the path of the tree, or a job."""

    __slots__ = ("allocated", "children", "request", "saturated", "share", "weight")

    def __init__(self, weight: float) -> None:
        self.weight = weight
        self.children: dict[str, FairNode] = {}
        self.allocated = Resource()
        self.request = Resource()
        self.share = 0.0
        self.saturated = False
        """Its request is met, or a resource that it lacks is used up: other nodes of the tree may be served before
        it."""


class FairTree:
    """The whole tree; call `refresh` after a change."""

    def __init__(self, total: Resource) -> None:
        self.total = total
        self.root = FairNode(1.0)
        self._held = Resource()
        self._paths: dict[str, list[str]] = {}
        """By queue: the path from the root to it."""

    def add_job(self, uid: str, queue: Queue, allocated: Resource, request: Resource) -> None:
        path, weights = _place(queue)
        self._paths[queue.name] = path
        node = self.root
        for i, step in enumerate(path[1:], 1):
            child = node.children.get(step)
            if child is None:
                child = node.children[step] = FairNode(_weight(weights, i))
            node = child
        leaf = node.children[uid] = FairNode(1.0)
        leaf.allocated = allocated.clone()
        leaf.request = request
        self._held.add(allocated)

    def leaf(self, uid: str, queue: str) -> FairNode | None:
        node: FairNode | None = self.root
        for step in [*self._paths.get(queue, [])[1:], uid]:
            node = node.children.get(step) if node is not None else None
        return node

    def move(self, uid: str, queue: str, amount: Resource, sign: int) -> None:
        """A job gets (sign 1) or loses (−1) an amount."""
        leaf = self.leaf(uid, queue)
        if leaf is None:
            return
        for held in (leaf.allocated, self._held):
            if sign > 0:
                held.add(amount)
            else:
                held.sub_unchecked(amount)

    def refresh(self) -> None:
        demanding = {d: self._held[d] < self.total[d] for d in self.total.names()}
        nodes = [self.root]
        for node in nodes:
            nodes += node.children.values()
        for node in reversed(nodes):
            self._refresh(node, demanding)

    def _refresh(self, node: FairNode, demanding: dict[str, bool]) -> None:
        """Update one node after the nodes below it."""
        if not node.children:
            node.share = self._dominant(node.allocated)
            node.saturated = any(
                (node.allocated[d] >= node.request[d] or not demanding.get(d, False)) and node.request[d] != 0
                for d in node.allocated.names()
            )
            return
        children = list(node.children.values())
        waiting = [self._dominant(c.allocated) for c in children if c.share != 0 and not c.saturated]
        least = min([1.0, *waiting])
        node.allocated = Resource()
        for c in children:
            if c.share != 0:
                part = c.allocated.clone()
                node.allocated.add(part if c.saturated else part.multi(least / c.share))
        node.share = self._dominant(node.allocated)
        node.saturated = all(c.saturated for c in children)

    def _dominant(self, allocated: Resource) -> float:
        return max([0.0, *(share(allocated[d], self.total[d]) for d in self.total.names())])

    def compare(self, left: Queue, right: Queue) -> float:
        """Below 0: the left queue is served first."""
        a, b = self._paths.get(left.name) or _place(left)[0], self._paths.get(right.name) or _place(right)[0]
        x, y = self.root, self.root
        depth = min(len(a), len(b))
        for i in range(depth):
            if x.saturated != y.saturated:
                return 1.0 if x.saturated else -1.0
            difference = x.share / x.weight - y.share / y.weight
            if difference:
                return difference
            if i + 1 < depth:
                below = x.children.get(a[i + 1]), y.children.get(b[i + 1])
                if below[0] is None or below[1] is None:
                    return 0.0
                x, y = below[0], below[1]
        return 0.0


def _place(queue: Queue) -> tuple[list[str], list[str]]:
    annotations = queue.object.metadata.annotations or {}
    return annotations.get(names.HIERARCHY, "").split("/"), annotations.get(names.HIERARCHY_WEIGHTS, "").split("/")


def _weight(weights: list[str], i: int) -> float:
    """At least 1, and 1 for text that Go does not parse as a number, such as `" 2"` and `1_000`."""
    try:
        text = weights[i]
        return 1.0 if "_" in text or text != text.strip() else max(float(text), 1.0)
    except (ValueError, IndexError):
        return 1.0
