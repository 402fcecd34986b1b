"""consolidate: moves pods if, and only if, a waiting gang starts by it. Not in Volcano.

The action shuffle evicts the pods. It comes after allocate, so that a gang that fits without moves has started. The
gang is pipelined at once on the nodes that the moves free, and each moved pod fits what is idle on another node.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

import msgspec

from volcano_py.scheduler.framework.jobs.planned_moves import GangMoves, PlannedMoves
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.network.job_domains import has_topology_below
from volcano_py.scheduler.framework.plugin import Plugin, PluginArguments
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.statement import Statement
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.plugins.consolidate.gang_plan import plan_for
from volcano_py.scheduler.plugins.consolidate.held_targets import (
    AGAIN,
    MovedJob,
    MovesInProgress,
    TargetFilter,
    target_of,
)
from volcano_py.scheduler.plugins.consolidate.movable import movable_for, movable_pods, within_budgets

_MOST = 64


class Consolidate(Plugin):
    """See `Arguments`."""

    name = "consolidate"

    class Arguments(PluginArguments):
        dry_run: bool = msgspec.field(default=False, name="dry-run")
        """Whether moves are only reported."""
        patience: str = "5m"
        """How long a gang waits before pods are moved for it."""
        longest_run: str = msgspec.field(default="", name="longest-run")
        """Pods that would lose more work than this are not moved; empty: no limit."""
        gangs: int = 4
        """For how many waiting gangs moves are looked for in a session; pods are moved for one of them."""

    arguments: Arguments

    def __init__(self, arguments: Mapping[str, Any] | None = None) -> None:
        super().__init__(arguments)
        self.patience = self.duration("patience")
        longest = self.optional_duration("longest_run", "there is no limit")
        self.longest = inf if longest is None else longest
        self.gangs = self.arguments.gangs
        if not 1 <= self.gangs <= _MOST:
            self.warn(f"argument gangs is {self.gangs}, and must be from 1 to {_MOST}; 4 is used")
            self.gangs = 4

    def on_session_open(self, session: Session) -> None:
        self._moves = session.cluster.keep(MovesInProgress)
        self._moves.forget(session)
        if self._moves.moved:
            session.add_filters(TargetFilter(session, self._moves))
        session.add_victim_tasks(lambda running: self._victims(session, running))

    def _victims(self, session: Session, running: list[Task]) -> list[Task]:
        if self._moves.moved:
            return []  # what was moved starts first
        tried, movable = 0, None
        for job in _in_order(session):
            wakes = max(job.created + self.patience, self._moves.at.get(job.uid, -inf) + AGAIN)
            if session.now < wakes:
                session.wake_at(wakes)
                continue
            tried += 1
            if tried > self.gangs:
                break
            if movable is None:
                movable = movable_pods(session, running, self.longest)
            priority = max((task.priority for task in job.tasks.values()), default=0)
            found = plan_for(session, job, movable_for(movable, priority))
            if found is not None and self._holds(session, job, found):
                session.shared(PlannedMoves, PlannedMoves).of[job.uid] = found
                return self._report(session, job, found)
        return []

    def _holds(self, session: Session, job: SessionJob, found: GangMoves) -> bool:
        """Whether budgets, filters, and the limits of the queue permit it; the gang is then pipelined."""
        if not within_budgets(session, [task for task, _ in found.moved]):
            return False
        statement, queue = Statement(session, job.uid), session.queues[job.queue]
        for task, node in found.placed:
            permitted = session.limits.allocatable(queue, task) and session.placement.accepts(task, node)
            if not permitted or statement.pipeline(task, node, evicted=True) is not None:
                statement.discard()
                return False
        if not (session.states.job_pipelined(job) and job.is_pipelined()) or self.arguments.dry_run:
            holds = session.states.job_pipelined(job) and job.is_pipelined()
            statement.discard()
            return holds
        statement.commit()
        return True

    def _report(self, session: Session, job: SessionJob, found: GangMoves) -> list[Task]:
        count = len(found.moved)
        what = f"{count} pod{'s' if count > 1 else ''}: {found.text(session.table.names)}"
        if self.arguments.dry_run:
            session.note(job, "Normal", "ConsolidationPossible", f"the gang would start by moving {what}")
            return []
        session.note(job, "Normal", "Consolidating", f"the gang starts by moving {what}")
        found.made = True
        self._moves.at[job.uid] = session.now
        for task, node in found.moved:
            moved = self._moves.moved.setdefault(task.job, MovedJob(session.now, session.jobs[task.job].ready_num, []))
            moved.targets.append(target_of(session, task, node))
        return [task for task, _ in found.moved]


def _in_order(session: Session) -> list[SessionJob]:
    """The gangs that wait for nodes, in the order of their queues and of these."""
    found = []
    for job in session.jobs.active():
        if job.is_pending() or not job.counts[st.PENDING] or job.ready_num >= max(1, job.min_available):
            continue
        if job.counts[st.PIPELINED] or has_topology_below(job) or job.has_policies:
            continue
        if session.states.job_valid(job) is not None or session.limits.overused(session.queues[job.queue]):
            continue
        found.append(job)
    return sorted(found, key=lambda job: (session.orders.job_key(job), job.created, job.uid))
