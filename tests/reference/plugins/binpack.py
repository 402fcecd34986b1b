"""binpack: prefers nodes that are in use."""

from __future__ import annotations

from typing import Any

from tests.reference.conf import get_int
from tests.reference.node import Node
from tests.reference.session import Session
from tests.reference.task import Task


def binpack(session: Session, arguments: dict[str, Any]) -> None:
    def weight(key: str) -> int:
        w = get_int(arguments, key, 1)
        return w if w >= 0 else 1

    overall = weight("binpack.weight")
    weights: dict[str, int] = {}
    for name in str(arguments.get("binpack.resources") or "").split(","):
        if name.strip():
            weights[name.strip()] = weight(f"binpack.resources.{name.strip()}")
    weights["cpu"] = weight("binpack.cpu")
    weights["memory"] = weight("binpack.memory")

    def node_order(task: Task, node: Node) -> float:
        score, sum_of_weights = 0.0, 0
        for name in task.resreq.names():
            if name not in weights:
                continue
            w = weights[name]
            capacity, wanted = node.allocatable.get(name), task.resreq.get(name) + node.used.get(name)
            if capacity != 0 and w != 0:
                if wanted > capacity:
                    return 0.0
                score += wanted * w / capacity
            sum_of_weights += w
        if sum_of_weights > 0:
            score /= sum_of_weights
        return score * (100 * overall)

    if overall != 0:
        session.votes.register("NodeOrder", "binpack", node_order)
