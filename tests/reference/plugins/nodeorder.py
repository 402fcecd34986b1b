"""kube-scheduler's scores, added with weights."""

from __future__ import annotations

from typing import Any

from tests.reference.conf import get_int
from tests.reference.kube import allocation, images, node_affinity, pod_affinity, spread, taints
from tests.reference.node import Node
from tests.reference.session import Session
from tests.reference.task import Task

DEFAULT_WEIGHTS = {
    "leastrequested": 1,
    "mostrequested": 0,
    "balancedresource": 1,
    "nodeaffinity": 2,
    "podaffinity": 2,
    "tainttoleration": 3,
    "imagelocality": 1,
    "podtopologyspread": 2,
}


def nodeorder(session: Session, arguments: dict[str, Any]) -> None:
    weights = {name: get_int(arguments, f"{name}.weight", w) for name, w in DEFAULT_WEIGHTS.items()}
    node_map = session.node_map

    def node_order(task: Task, node: Node) -> float:
        if weights["imagelocality"] == 0:
            return 0.0
        score = images.score(task.pod, node, session.nodes)
        if score > 0:
            session.votes.deciding.add("nodeorder.imagelocality")
        return float(score * weights["imagelocality"])

    def scores_of(name: str, task: Task, nodes: list[Node]) -> list[int] | None:
        """None: the scorer has no score for this pod."""
        pod = task.pod
        match name:
            case "leastrequested":
                return [allocation.least(pod, n, node_map.pods[n.name]) for n in nodes]
            case "mostrequested":
                return [allocation.most(pod, n, node_map.pods[n.name]) for n in nodes]
            case "balancedresource":
                if allocation.requests_nothing(pod):
                    return None
                return [allocation.balanced(pod, n, node_map.pods[n.name]) for n in nodes]
            case "nodeaffinity":
                sums = [node_affinity.preferred_score(pod, n) for n in nodes]
                given = [s for s in sums if s is not None]
                return normalised(given, reverse=False) if given else None
            case "tainttoleration":
                return normalised([taints.intolerable_preferences(pod, n) for n in nodes], reverse=True)
            case "podaffinity":
                return pod_affinity.scores(pod, nodes, node_map)
            case "podtopologyspread":
                return spread.scores(pod, nodes, node_map)
        raise ValueError(name)

    def batch_node_order(task: Task, nodes: list[Node]) -> list[float]:
        total = [0.0] * len(nodes)
        for name, weight in weights.items():
            if name == "imagelocality" or weight == 0:
                continue
            scores = scores_of(name, task, nodes)
            if scores is None:
                continue
            if len(set(scores)) > 1:
                session.votes.deciding.add(f"nodeorder.{name}")
            for i, score in enumerate(scores):
                total[i] += score * weight
        return total

    session.votes.register("NodeOrder", "nodeorder", node_order)
    session.votes.register("BatchNodeOrder", "nodeorder", batch_node_order)


def normalised(scores: list[int], reverse: bool) -> list[int]:
    greatest = max(scores)
    if greatest == 0:
        return [100] * len(scores) if reverse else scores
    result = [100 * s // greatest for s in scores]
    return [100 - r for r in result] if reverse else result
