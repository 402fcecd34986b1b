"""Topology-aware preemption: try every node with as few evictions as possible, and select the node with the least
important victims.

Volcano: preempt with enableTopologyAwarePreemption; kube-scheduler's preemption evaluator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from volcano_py.api.meta import parse_time
from volcano_py.scheduler.framework.jobs.victim_order import victims_queue
from volcano_py.scheduler.framework.search.node_rules import follows_dry_runs
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.statement import Statement
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.task import Task

_AFFINITY = "InterPodAffinity"


class EvictionCandidate(NamedTuple):
    """A node with its victims, the most important first."""

    node: int
    victims: list[Task]


def best_candidate(
    session: Session, task: Task, nodes: list[int], may_evict: Callable[[Task], bool], most: int
) -> EvictionCandidate | None:
    """The node with the smallest loss, among the first `most` nodes that can be made to fit."""
    found: list[EvictionCandidate] = []
    for node in nodes:
        with session.events.dry_run():
            victims = _dry_run(session, task, node, may_evict)
        if victims:
            found.append(EvictionCandidate(node, victims))
            if len(found) >= most:
                break
    if not found:
        return None
    return min(found, key=lambda c: _loss(session, c))


def _dry_run(session: Session, task: Task, node: int, may_evict: Callable[[Task], bool]) -> list[Task]:
    """The victims on a node: evict one by one until the task fits, then undo each eviction that is not needed. Leaves
    the session unchanged."""
    placement = session.placement
    candidates = [v for v in session.on_node(node) if may_evict(v)]
    victims = session.victims.preemptable(task, candidates) if candidates else []
    session.work.last_victims = len(victims)
    if not session.fits_without(task, node, victims):
        return []
    queue = session.queues[session.jobs[task.job].queue]
    # Without these flags a plugin's filters do not see the moves of a dry run, as in Volcano.
    owner = placement.owner(_AFFINITY)
    sees = session.enabled(owner, "enablePreemptable") or session.enabled(owner, "enabledAllocatable")
    before = placement.accepts_by(task, node, _AFFINITY)
    followed = [f.name for _, f in placement.filters if follows_dry_runs(f)]
    may_hold = session.limits.allocatable if session.deviations.sure_evictions else session.limits.simulate_allocatable

    def near() -> bool:
        if not all(placement.accepts_by(task, node, name) for name in followed):
            return False
        return placement.accepts_by(task, node, _AFFINITY) if sees else before

    def fits() -> bool:
        return near() and placement.fits_soon(task, node) and may_hold(queue, task)

    statements: dict[str, Statement] = {}
    bound = [v for v in victims if session.status(v) == st.BOUND]
    queued = victims_queue(session, victims, task)
    in_order = [queued.pop() for _ in victims]  # a dry run changes no share, so the order of jobs is constant
    evicted: list[Task] = []
    for victim in in_order:
        statements[victim.key] = Statement(session)
        statements[victim.key].evict(victim, "preempt")
        evicted.append(victim)
        if fits():
            break
    needed: list[Task] = []
    # Volcano does not check the queue again before it evicts all of them.
    if evicted and (fits() if session.deviations.sure_evictions else near()):
        for victim in reversed(evicted):
            statements[victim.key].discard()
            if not fits():
                statements[victim.key].evict(victim, "preempt")
                needed.append(victim)
    for statement in statements.values():
        statement.discard()
    for victim in bound:  # an undone eviction sets the status Running; these pods were bound before
        session.moves.move(victim, st.BOUND)
    return needed


def _loss(session: Session, candidate: EvictionCandidate) -> tuple[float, ...]:
    """Smaller is better: the first victim's priority, the sum of priorities, their number, how long they have run."""
    priorities = [v.pod.spec.priority or 0 for v in candidate.victims]
    highest = max(priorities)
    started = [
        parse_time(v.pod.status.start_time) if v.pod.status.start_time else session.now
        for v, p in zip(candidate.victims, priorities, strict=True)
        if p == highest
    ]
    return (
        float(priorities[0]),
        float(sum(p + 2**31 for p in priorities)),
        float(len(priorities)),
        -min(started),
        float(np.int64(session.placement.rank[candidate.node])),
    )
