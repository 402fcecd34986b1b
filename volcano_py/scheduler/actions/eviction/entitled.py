"""Serving gangs that their queue is entitled to (deviation whole-gang-reclaim). In Volcano reclaim evicts single pods,
and never a whole gang.

A gang is entitled if its queue, with the gang, stays within what it deserves (`QueueLimits.add_lends`). Units are
evicted for it while their queue holds more than it deserves of a short resource; a unit can be larger than this
surplus.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from volcano_py.scheduler.actions.eviction.back_off import backs_off
from volcano_py.scheduler.actions.eviction.entitled_attempt import EntitledAttempt
from volcano_py.scheduler.actions.eviction.gangs import wanted_by_gang
from volcano_py.scheduler.actions.eviction.placed_tasks import PermittedVictims
from volcano_py.scheduler.actions.placing.arrangement import Lacking, lacking
from volcano_py.scheduler.actions.placing.task_queue import task_queue
from volcano_py.scheduler.actions.placing.worksheet import worksheet
from volcano_py.scheduler.framework.extension_points.hyper_nodes import EVICT
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.network.topology import ROOT
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.statement import Statement, StatementStep
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.task import Task

MOST_DOMAINS = 8
MOST_UNITS_OF_CYCLE = 200_000
"""Units that are listed in one cycle; beyond it, only pods above the minimum of their jobs are victims."""
MOST_CLASSES = 4
"""Up to this number of classes of members, a choice that begins with each class is tried."""
Shape = tuple[str, tuple[tuple[int, str, int], ...], int, tuple[tuple[str, int], ...], str]
"""The queue of a gang, how many of its pending tasks are of each class and role, what it lacks of its minimum, in all
and by role, and its name if it has a topology or sub-groups."""


class EntitledGangs:
    """The gangs for which evictions were tried in this session; gangs of the same shape are not tried again."""

    def __init__(self, session: Session, permitted: Callable[[Session, SessionJob], PermittedVictims]) -> None:
        self._session = session
        self._permitted = permitted
        self._tried: set[Shape] = set()
        self._listed = 0

    def serve(self, job: SessionJob) -> bool:
        """Evict units for the missing members of a gang, and nominate nodes; returns whether that was possible."""
        session = self._session
        if job.is_pending() or not _may_reclaim(session, job) or backs_off(session, job):
            return False
        shape = _shape(session, job)
        if shape in self._tried:
            return False
        choices = _choices(session, job)
        best: tuple[tuple[float, int], Statement, list[StatementStep], str] | None = None
        for tasks in choices:
            for domain in _domains(session, job):
                attempt = EntitledAttempt(session, job, tasks, domain, self._permitted(session, job))
                statement = attempt.plan(self._listed < MOST_UNITS_OF_CYCLE)
                self._listed += attempt.listed
                if statement is None:
                    continue
                cost = (attempt.below, sum(s.kind == "evict" for s in statement.steps))
                if best is None or cost < best[0]:
                    best = (cost, statement, list(statement.steps), domain)
                if len(choices) > 1:
                    statement.discard()
                break
        if best is not None:
            _, statement, steps, domain = best
            if len(choices) == 1 or statement.replay(steps) is None:
                statement.commit()
                for sub in job.sub_jobs.values():
                    sub.nominated_hyper_node = "" if domain == ROOT else domain
                return True
            statement.discard()
        self._tried.add(shape)
        return False


def _may_reclaim(session: Session, job: SessionJob) -> bool:
    queue = session.queues[job.queue]
    return (
        queue.state == "Open"
        and job.min_available > job.ready_num + job.counts[st.PIPELINED]
        and session.states.job_valid(job) is None
        and session.states.job_starving(job)
    )


def _shape(session: Session, job: SessionJob) -> Shape:
    counts = Counter((task.spec_class.id, task.role) for task in session.pending(job))
    classes = tuple(sorted((id, role, count) for (id, role), count in counts.items()))
    need = lacking(session, job, None)
    alone = job.uid if job.has_topology or job.pod_group.spec.sub_group_policy else ""
    return job.queue, classes, need.members, tuple(sorted(need.roles.items())), alone


def _choices(session: Session, job: SessionJob) -> list[list[Task]]:
    """The members to place, first one first: by their order, and if they differ, the smallest ones, and those of each
    class first."""
    wanted = [t for t in session.pending(job) if wanted_by_gang(t)]
    if any(t.pod.spec.preemption_policy == "Never" for t in wanted):
        return []
    if job.pod_group.spec.sub_group_policy:
        return _by_sub_job(session, job)
    need = lacking(session, job, None)
    in_order = list(task_queue(session.orders, wanted))[::-1]
    found = [_first(in_order, need)]
    if len({t.spec_class.id for t in wanted}) > 1:
        total = session.total

        def size(task: Task) -> tuple[float, float]:
            parts = [task.request[d] / total[d] for d in task.request.names() if total[d]]
            return max(parts, default=0.0), sum(parts)

        found.append(_first(sorted(in_order, key=size), need))
        for id in list(dict.fromkeys(t.spec_class.id for t in in_order))[:MOST_CLASSES]:
            found.append(_first(sorted(in_order, key=lambda t: t.spec_class.id != id), need))
    return [tasks for i, tasks in enumerate(found) if tasks and tasks not in found[:i]]


def _by_sub_job(session: Session, job: SessionJob) -> list[list[Task]]:
    """The members that complete the required sub-jobs, and then the job. None if a sub-job has a topology of its own:
    gangreclaim serves such jobs."""
    if not job.sub_jobs:
        session.divide(job)
    if any(sub.constraint is not None and sub.constraint.hard for sub in job.sub_jobs.values() if sub.uid != job.uid):
        return []
    sheet = worksheet(session, job, wanted_by_gang)
    chosen, others = [], []
    for sub in sheet.order(session, job):
        tasks = list(reversed(sheet.tasks[sub.uid]))
        count = max(sub.min_available - sub.ready_num, 0) if sub.uid in sheet.required else 0
        chosen += tasks[:count]
        others += tasks[count:]
    chosen += others[: max(job.min_available - job.ready_num - len(chosen), 0)]
    return [chosen] if chosen else []


def _first(tasks: list[Task], need: Lacking) -> list[Task]:
    """The first tasks that complete a minimum, in their order; none if there are too few."""
    roles, others = dict(need.roles), need.members - sum(need.roles.values())
    chosen = []
    for task in tasks:
        if roles.get(task.role, 0) > 0:
            roles[task.role] -= 1
            chosen.append(task)
        elif others > 0:
            others -= 1
            chosen.append(task)
    return chosen if len(chosen) == need.members and chosen else []


def _domains(session: Session, job: SessionJob) -> list[str]:
    """Where the gang may be: the whole cluster, or the HyperNodes that its topology allows, the narrow ones first."""
    if not job.has_hard_topology:
        return [ROOT]
    return list(dict.fromkeys(n for group in session.network.job_gradients(job, ROOT, EVICT) for n in group))[
        :MOST_DOMAINS
    ]
