"""Which nodes can take a task, and which is best. Volcano: PredicateNodes, PrioritizeNodes."""

from __future__ import annotations

from collections.abc import Callable

from tests.reference.node import Node
from tests.reference.session import Session
from tests.reference.task import Task
from tests.reference.votes import PredicateError

Check = Callable[[Task, Node], None]


class PredicateHelper:
    """Remembers on which nodes tasks of one job and role have failed; the next of them is not tried there."""

    def __init__(self, session: Session, error_cache: bool) -> None:
        self.session = session
        self.error_cache = error_cache
        self.failed: dict[tuple[str, str], set[str]] = {}

    def predicate_nodes(self, task: Task, nodes: list[Node], check: Check) -> list[Node]:
        group = (task.job, task.role)
        use_cache = self.error_cache and bool(task.role) and group in self.failed
        found = []
        for node in nodes:
            fits = _passes(task, node, check)
            if use_cache and node.name in self.failed[group]:
                if fits:
                    self.session.rarities.add("error-cache")
                continue
            if fits:
                found.append(node)
            else:
                self.failed.setdefault(group, set()).add(node.name)
        return found


def _passes(task: Task, node: Node, check: Check) -> bool:
    try:
        check(task, node)
    except PredicateError:
        return False
    return True


def best_node(session: Session, task: Task, nodes: list[Node]) -> Node | None:
    """The only one, or the one of the highest score, or of these the one of the lowest rank."""
    if not nodes:
        return None
    if len(nodes) == 1:
        return nodes[0]
    scores = session.votes.node_scores(task, nodes)
    greatest = max(scores)
    best = [n for n, s in zip(nodes, scores, strict=True) if s == greatest]
    return min(best, key=lambda n: session.rank(n.name))
