"""Which nodes accept a task, and which is best. Volcano: PredicateNodes, PrioritizeNodes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from tests.reference.node import Node
from tests.reference.session import Session
from tests.reference.task import Task
from tests.reference.votes import PredicateError

Check = Callable[[Task, Node], None]


class PredicateHelper:
    """Keeps the nodes that rejected tasks of one job and role; the next such task is not tried there."""

    def __init__(self, session: Session, error_cache: bool) -> None:
        self.session = session
        self.error_cache = error_cache
        self.failed: dict[tuple[str, str], dict[str, PredicateError]] = {}
        """By node."""
        self.rejected: dict[str, PredicateError] = {}
        """The rejections of the last search, by node."""

    def predicate_nodes(self, task: Task, nodes: list[Node], check: Check) -> list[Node]:
        group = (task.job, task.role)
        use_cache = self.error_cache and bool(task.role) and group in self.failed
        found = []
        self.rejected = {}
        failed_now: dict[str, PredicateError] = {}
        for node in nodes:
            error = _error(task, node, check)
            fits = error is None
            if use_cache and node.name in self.failed[group]:
                if fits:
                    self.session.rarities.add("error-cache")
                self.rejected[node.name] = self.failed[group][node.name]
                continue
            if error is None:
                found.append(node)
            else:
                failed_now[node.name] = self.rejected[node.name] = error
        self.failed.setdefault(group, {}).update(failed_now)
        return found


def _error(task: Task, node: Node, check: Check) -> PredicateError | None:
    try:
        check(task, node)
    except PredicateError as e:
        return e
    return None


def for_preemption(session: Session) -> Check:
    """The filters, without rejections that evictions can resolve. Volcano: PredicateForPreemptAction."""

    def check(task: Task, node: Node) -> None:
        try:
            session.votes.predicate(task, node)
        except PredicateError as e:
            if e.unresolvable:
                raise

    return check


def resolvable_nodes(session: Session, task: Task) -> list[Node]:
    """Volcano: FilterOutUnschedulableAndUnresolvableNodesForTask; in the order of names, where Volcano has no order."""
    errors = session.jobs[task.job].fit_errors.get(task.uid)
    return [n for name, n in sorted(session.nodes.items()) if errors is None or name not in errors.hopeless]


def by_score(session: Session, task: Task, nodes: list[Node]) -> list[Node]:
    """The best node first; equal ones by rank. Volcano: SortNodes."""
    if not nodes:
        return []
    scores = session.votes.node_scores(task, nodes)
    record_rounding(session, scores)
    rated = zip(scores, nodes, strict=True)
    return [n for _, n in sorted(rated, key=lambda r: (-r[0], session.rank(r[1].name)))]


def record_rounding(session: Session, scores: list[float]) -> None:
    """Record scores that differ only by the order of additions."""
    in_order = sorted(scores)
    for a, b in pairwise(in_order):
        if 0 < b - a < 1e-9 * max(1.0, abs(b)):
            session.rarities.add("rounding")


def best_node(session: Session, task: Task, nodes: list[Node]) -> Node | None:
    """The only node, or the one with the highest score, or of these the one with the lowest rank."""
    if not nodes:
        return None
    if len(nodes) == 1:
        return nodes[0]
    scores = session.votes.node_scores(task, nodes)
    greatest = max(scores)
    record_rounding(session, [s for s in scores if greatest - s < 1])
    best = [n for n, s in zip(nodes, scores, strict=True) if s == greatest]
    return min(best, key=lambda n: session.rank(n.name))
