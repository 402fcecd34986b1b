"""Evicting for a whole gang in one domain of the network. Volcano: the common part of gangpreempt and gangreclaim.

For each domain and each set of bundles, the plan is tried in the session: the bundles are evicted and the gang is
pipelined. The statement is kept only if the whole gang fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec
import numpy as np
from msgspec import field
from numpy.typing import NDArray

from volcano_py.api import names
from volcano_py.scheduler.actions.allocate_arguments import settings as allocate_settings
from volcano_py.scheduler.actions.eviction.starving import starving_by_queue
from volcano_py.scheduler.actions.eviction.victims.bundles import (
    Bundle,
    bundles_of,
    completed,
    flattened,
    in_order,
    only_allowed,
    requests,
    serves,
)
from volcano_py.scheduler.actions.eviction.will_start import will_start
from volcano_py.scheduler.actions.placing.task_queue import TaskQueue
from volcano_py.scheduler.actions.placing.worksheet import worksheet
from volcano_py.scheduler.framework.extension_points.hyper_nodes import EVICT
from volcano_py.scheduler.framework.extension_points.victims import EvictionContext
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.jobs.sub_job import SubJob
from volcano_py.scheduler.framework.network.topology import ROOT
from volcano_py.scheduler.framework.plugin import ActionArguments
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.statement import Statement
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.task import Task, flag
from volcano_py.scheduler.model.queue import Queue
from volcano_py.scheduler.model.resource import ZERO, Resource


class GangEvictionArguments(ActionArguments):
    max_domains: int = field(default=8, name="maxDomains")
    """How many domains are tried for a job."""
    whole_bundles: bool = field(default=True, name="allowWholeBundle")
    """Whether a job may fall below its minimum, and is then evicted as a whole."""


class Policy(msgspec.Struct, frozen=True):
    """The differences between gangpreempt and gangreclaim."""

    name: str
    may_evict: Callable[[Session, SessionJob, Task], bool]
    """Whether a task may be a victim of a job."""
    before: Callable[[Session, SessionJob, SessionJob, SessionJob], bool]
    """Whether the first of two victim jobs is evicted before the second; the third job is the preemptor."""
    reclaims: bool
    """Pods of other queues are victims: overused queues wait, and plugins decide whether the queue may reclaim."""


def evict_for_gangs(session: Session, policy: Policy, arguments: GangEvictionArguments) -> None:
    """Evict for the starving jobs, in the order of queues and jobs."""
    settings = arguments if arguments.max_domains > 0 else msgspec.structs.replace(arguments, max_domains=8)
    queues, starving = starving_by_queue(session)
    while queues:
        queue = queues.pop()
        if policy.reclaims and session.limits.overused(queue):
            continue
        waiting = starving[queue.name]
        while waiting:
            job = waiting.pop()
            evict_for_gang(session, policy, settings, queue, job)


def wanted_by_gang(task: Task) -> bool:
    """Whether a gang requires a task: it requests a resource and is not gated."""
    return not task.best_effort and not task.sched_gated


def evict_for_gang(
    session: Session,
    policy: Policy,
    settings: GangEvictionArguments,
    queue: Queue,
    job: SessionJob,
) -> bool:
    """Find a domain and bundles whose eviction makes the pending tasks of a job fit; evict them, and nominate the
    nodes. Returns whether that was possible."""
    if not job.sub_jobs:
        session.divide(job)
    pending = _pending(session, job)
    if not pending or (policy.reclaims and not session.limits.preemptive(queue, pending)):
        return False
    need = requests(pending)
    for domain in domains(session.network.job_gradients(job, ROOT, EVICT), settings.max_domains, _fallback(job)):
        bundles = _bundles(session, policy, settings, job, domain, need)
        free = _free(session, domain)
        for count in range(1, len(bundles) + 1):
            free.add(bundles[count - 1].local)
            if not need.less_equal(free, ZERO):
                continue
            chosen = bundles[:count]
            found = _plan(session, policy.name, queue, job, domain, flattened(chosen))
            if found is None:
                continue
            if session.deviations.fewest_victims:
                found[0].discard()

                def plan(victims: list[Task], domain: str = domain) -> _Plan | None:
                    return _plan(session, policy.name, queue, job, domain, victims)

                found = plan(_fewest(chosen, bundles, need, len(pending), lambda victims: _undone(plan(victims))))
                assert found is not None, "a plan that was possible before is still possible"
            statement, places = found
            if session.events.placements_leave_traces:  # Volcano makes every plan as a dry run, and then once more
                steps = list(statement.steps)
                statement.discard()
                if statement.replay(steps) is not None:
                    statement.discard()
                    continue
            statement.commit()
            for sub, place in places:
                sub.nominated_hyper_node = place
            return True
    return False


_Plan = tuple[Statement, list[tuple[SubJob, str]]]


def _fewest(
    chosen: list[Bundle], bundles: list[Bundle], need: Resource, size: int, works: Callable[[list[Task]], bool]
) -> list[Task]:
    """The fewest tasks of all bundles that free enough for a gang, starting from the chosen ones. `size`: of the gang.

    Units are the single tasks above a job's minimum, and whole bundles. From the chosen bundles, and from all together,
    units are left out as long as the rest `works`: once from the last to be evicted, once from the smallest. The search
    is a heuristic.
    """
    best = flattened(chosen)
    for start in (chosen, bundles):
        units = [part for b in start for part in ([b.tasks] if b.whole else [[t] for t in b.tasks])]
        if len(units) * size > _MOST_TRIED:
            continue
        smallest = sorted(units, key=lambda unit: serves(requests(unit), need))
        for order in (units[::-1], smallest):
            kept = list(units)
            for unit in order:
                fewer = [u for u in kept if u is not unit]
                if fewer and works([t for u in fewer for t in u]):
                    kept = fewer
            best = min(best, [t for u in kept for t in u], key=len)
    return best


_MOST_TRIED = 20_000
"""The limit of units times members of the gang up to which units are left out one by one."""


def _undone(plan: _Plan | None) -> bool:
    """Whether there was a plan; discards it."""
    if plan is not None:
        plan[0].discard()
    return plan is not None


def _pending(session: Session, job: SessionJob) -> list[Task]:
    """The tasks to place: the next sub-job of a job that is ready, all sub-jobs of a job that is not."""
    sheet = worksheet(session, job, wanted_by_gang)
    order = sheet.order(session, job)
    if session.states.job_ready(job):
        order = order[:1]
    return [t for sub in order for t in reversed(sheet.tasks[sub.uid])]


def _fallback(job: SessionJob) -> str:
    """The domain of a job for which the plugins name none: the whole cluster, or "" if the job has a hard topology."""
    return "" if job.has_hard_topology else ROOT


def domains(gradients: Iterable[Iterable[str]], most: int, fallback: str) -> list[str]:
    """The HyperNodes of all groups, each once, up to `most`; the fallback if there are none."""
    found = list(dict.fromkeys(name for group in gradients for name in group))[:most]
    return found or ([fallback] if fallback else [])


def _free(session: Session, domain: str) -> Resource:
    """The idle and releasing capacity of a domain; pipelined tasks are not subtracted. What nodes hold above their
    allocatable amounts lowers the sum, as in Volcano."""
    n, columns = session.numbers, session.topology.columns(domain)
    total = (n.idle[:, columns] + n.releasing[:, columns]).sum(axis=1)
    free = Resource(scalars={})
    for name, row in session.table.rows.items():
        free[name] = total.item(row)
    return free


def _bundles(
    session: Session, policy: Policy, settings: GangEvictionArguments, job: SessionJob, domain: str, need: Resource
) -> list[Bundle]:
    """The permitted victims of a job in a domain as bundles, in the order of eviction."""
    of: dict[str, list[Task]] = {}
    for node in session.topology.columns(domain).tolist():
        for task in session.on_node(node):
            if task.job in session.jobs and policy.may_evict(session, job, task):
                of.setdefault(task.job, []).append(task)

    def before(left: SessionJob, right: SessionJob) -> bool:
        return policy.before(session, left, right, job)

    exact = session.deviations.whole_gangs
    found = [
        bundle for uid in sorted(of) for bundle in bundles_of(session.jobs[uid], of[uid], session.statuses, exact=exact)
    ]
    found = [
        c
        for b in found
        if (c := completed(session, b) if b.whole and (exact or b.job.model.evicted_whole) else b) is not None
    ]
    ordered = in_order(found, need, before)
    context = EvictionContext(policy.name, job, domain)
    allowed = {t.uid for t in session.victims.unified_evictable(context, flattened(ordered))}
    kept = in_order(only_allowed(found, allowed), need, before)
    return [b for b in kept if settings.whole_bundles or not b.whole]


def victim_job_is_evictable(job: SessionJob) -> bool:
    """Whether tasks of a job may be evicted here; a job that does not set `preemptable` counts as preemptable."""
    meta = job.pod_group.metadata
    return flag(meta.annotations or {}, meta.labels or {}, names.PREEMPTABLE, absent=True)


# ---- dry runs --------------------------------------------------------------------------------------------------


def _plan(
    session: Session, reason: str, queue: Queue, job: SessionJob, domain: str, victims: list[Task]
) -> _Plan | None:
    """Evict the victims and pipeline the job in the domain: applied to the session; None and undone if it does not
    fit."""
    sheet = worksheet(session, job, wanted_by_gang)
    if not sheet:
        return None
    was_ready = session.states.job_ready(job)
    statement = Statement(session, job.uid)
    for victim in victims:
        statement.evict(victim, reason)
    places: list[tuple[SubJob, str]] = []
    for sub in sheet.order(session, job):
        tasks = sheet.tasks[sub.uid]
        tries = (
            [name for group in session.network.sub_job_gradients(job, sub, domain, EVICT) for name in group]
            if job.has_hard_topology
            else [domain]
        )
        for name in tries:
            trial = _trial(session, queue, job, sub, tasks, name, bool(victims))
            if trial is not None:
                statement.merge(trial)
                places.append((sub, name))
                break
        else:
            statement.discard()
            return None
        if was_ready or will_start(session, job):
            break
    if not will_start(session, job):
        statement.discard()
        return None
    return statement, places


def _trial(
    session: Session, queue: Queue, job: SessionJob, sub: SubJob, tasks: TaskQueue, hyper_node: str, evicted: bool
) -> Statement | None:
    """Pipeline all tasks of a sub-job in a HyperNode; None, without changes, if one does not fit."""
    placement = session.placement
    statement = Statement(session, job.uid)
    inside = session.topology.mask(hyper_node)
    error_cache = not session.deviations.own_verdict and allocate_settings(session).error_cache
    rejected: dict[str, NDArray[np.bool_]] = {}
    """By role: the nodes that rejected one of its tasks."""
    waiting = tasks.copy()
    while waiting:
        task = waiting.pop()
        node = None
        if session.limits.allocatable(queue, task) and session.rules.pre_predicate(task) is None:
            if session.deviations.sure_evictions:
                node = placement.best(task, without=~inside)
            else:
                open_ = inside & ~_hopeless(session, job, task)
                ok = open_ & placement.resolvable(task) & placement.view(task).future
                if error_cache and task.role:
                    before = rejected.get(task.role)
                    rejected[task.role] = open_ & ~ok if before is None else before | (open_ & ~ok)
                    ok = ok if before is None else ok & ~before
                node = placement.best_among(task, ok)
        if node is None or statement.pipeline(task, node, evicted=evicted) is not None:
            statement.discard()
            return None
    if session.states.sub_job_ready(job, sub) or session.states.sub_job_pipelined(job, sub):
        return statement
    statement.discard()
    return None


def _hopeless(session: Session, job: SessionJob, task: Task) -> NDArray[np.bool_]:
    """The nodes that rejected the task in this session for reasons that evictions do not resolve.

    None if all nodes did: Volcano treats an empty list of the other nodes as a missing list.
    """
    errors = job.fit_errors.get(task.key)
    if errors is None or errors.unresolvable is None or errors.unresolvable.all():
        return np.zeros(len(session.table), dtype=bool)
    return errors.unresolvable


def running_or_bound(session: Session, task: Task) -> bool:
    return session.status(task) in (st.BOUND, st.RUNNING)
