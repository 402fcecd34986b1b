"""Placing a job with sub-jobs within the network's domains. Volcano: allocateForJob, allocateForSubJob.

Each HyperNode of a gradient is tried in a dry run: the tasks that fit are placed, the steps are recorded, and the dry
run is discarded. The steps of the best HyperNode are then replayed and committed.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from volcano_py.scheduler.actions.placing.place_tasks import (
    place,
    place_as_nominated,
    place_needed_best_effort,
    place_tasks,
)
from volcano_py.scheduler.actions.placing.place_tree import allocate_tree
from volcano_py.scheduler.actions.placing.sub_job_arrangement import arranged_sub_jobs
from volcano_py.scheduler.actions.placing.task_queue import TaskQueue, refill
from volcano_py.scheduler.actions.placing.worksheet import Worksheet
from volcano_py.scheduler.framework.extension_points.hyper_nodes import ALLOCATE
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.jobs.sub_job import SubJob, TierConstraint
from volcano_py.scheduler.framework.network.topology import ROOT
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.statement import Statement, StatementStep
from volcano_py.scheduler.model.queue import Queue
from volcano_py.scheduler.model.resource import Resource


class Solution(NamedTuple):
    """The steps of a dry run below one HyperNode, and the tasks that it leaves."""

    hyper_node: str
    steps: list[StatementStep]
    left: Worksheet
    score: float
    places: dict[str, str]
    """The HyperNode of each sub-job afterwards: UID → HyperNode."""


def allocate_job(session: Session, queue: Queue, job: SessionJob, sheet: Worksheet) -> bool:
    """Place the job in the best HyperNode of the first gradient with capacity; returns whether it is ready and bound.

    The tasks that are not placed stay in the worksheet.
    """
    if job.model.tree is not None:
        return allocate_tree(session, queue, job, job.model.tree, sheet)
    gradients = session.network.job_gradients(job, ROOT, ALLOCATE)
    if not any(gradients) and session.deviations.explain_topology:
        job.job_fit_errors = _nowhere(job.constraint, job.allocated_hyper_node, ROOT, job.min_resources)
    for gradient in gradients:
        best: Solution | None = None
        for bound, hyper_node in _by_score_bound(session, job, sheet, gradient):
            if best is not None and (best.score, hyper_node) > (bound, best.hyper_node):
                break  # neither this HyperNode nor a following one can be better
            job.forget_fit_errors()
            found = _try(session, queue, job, sheet, hyper_node)
            if found is None and session.deviations.what_fits_starts:
                found = _arranged(session, queue, job, sheet, hyper_node)
            if found is not None and (best is None or (-found.score, hyper_node) < (-best.score, best.hyper_node)):
                best = found
        if best is None:
            continue
        statement = Statement(session)
        sheet.tasks = best.left.tasks
        if statement.replay(best.steps) is not None or not session.states.job_ready(job):
            return False
        if not place_needed_best_effort(
            session, statement, job, None
        ):  # when all its sub-jobs are ready, it may still lack best-effort members
            return False
        statement.commit()
        _settle(session, job, best.hyper_node, best.places)
        return True
    return False


def _by_score_bound(
    session: Session, job: SessionJob, sheet: Worksheet, hyper_nodes: list[str]
) -> list[tuple[float, str]]:
    """HyperNodes with an upper bound of their score, highest first, so that not all of them are tried.

    The score of a sub-job in a HyperNode does not depend on the nodes of its tasks, except in three cases: other
    sub-jobs of the job are placed before it, some of its tasks are already placed (which breaks ties), or it is placed
    in several rounds and each round scores (with policies it may be ready before its job is).
    """
    subs = sheet.order(session, job)
    if len(subs) > 1 or subs[0].allocated_num or job.has_policies or session.events.placements_leave_traces:
        return [(inf, name) for name in sorted(hyper_nodes)]
    sub = subs[0]
    scores: dict[str, float] = {}
    bounds = []
    for name in hyper_nodes:
        within = [n for group in session.network.sub_job_gradients(job, sub, name, ALLOCATE) for n in group]
        for each in within:
            if each not in scores:
                scores.update(session.network.hyper_node_scores(sub, [each]))
        bounds.append((max((scores[n] for n in within), default=0.0), name))
    return sorted(bounds, key=lambda b: (-b[0], b[1]))


def _nowhere(constraint: TierConstraint | None, around: str, below: str, request: Resource | None) -> str:
    """The message of a job for which the plugins name no HyperNode."""
    if constraint is not None and constraint.label:
        return f"no domain of the node label {constraint.label} has capacity for all of its pods"
    if constraint is not None and constraint.unknown:
        return f"no HyperNode has the tier name {constraint.unknown}; correct highestTierName"
    tier = constraint.tier if constraint is not None else None
    where = f" around {around}, where it is," if around else "" if below == ROOT else f" in {below}"
    amounts = ", ".join(f"{name} {amount}" for name, amount in (request or Resource()).quantities().items())
    return f"no HyperNode{where} of tier {tier} or below has capacity for {amounts}"


def _settle(session: Session, job: SessionJob, hyper_node: str, places: dict[str, str]) -> None:
    """Store the HyperNodes of the job and its sub-jobs."""
    topology = session.topology
    job.allocated_hyper_node = topology.lowest_common(job.allocated_hyper_node, hyper_node)
    for uid, at in places.items():
        sub = job.sub_jobs[uid]
        sub.allocated_hyper_node = topology.lowest_common(sub.allocated_hyper_node, at)
        sub.nominated_hyper_node = ""


def _try(session: Session, queue: Queue, job: SessionJob, sheet: Worksheet, hyper_node: str) -> Solution | None:
    """Dry run below one HyperNode; None if the job would be neither ready nor pipelined."""
    before = {uid: sub.allocated_hyper_node for uid, sub in job.sub_jobs.items()}
    left = sheet.clone()
    statements: list[Statement] = []
    score = 0.0
    order = left.order(session, job)[::-1]
    while order:
        sub = order.pop()
        statement, rate = _allocate_sub_job(session, queue, job, sub, left, hyper_node)
        if statement is None:
            left.tasks.pop(sub.uid, None)  # it is tried again in the next cycle
            continue
        statements.append(statement)
        score += rate
        if sub.uid in left.tasks:
            order.append(sub)
            order.sort(key=lambda s: (s.uid not in left.required, session.orders.sub_job_key(s)), reverse=True)
        if session.states.job_ready(job):
            break
    steps = [step for s in statements for step in s.steps]
    good = bool(steps) and (session.states.job_ready(job) or session.states.job_pipelined(job))
    places = {uid: sub.allocated_hyper_node for uid, sub in job.sub_jobs.items() if sub.allocated_hyper_node}
    for statement in reversed(statements):
        statement.discard()
    for uid, old in before.items():
        job.sub_jobs[uid].allocated_hyper_node = old
    return Solution(hyper_node, steps, left, score, places) if good else None


def _arranged(session: Session, queue: Queue, job: SessionJob, sheet: Worksheet, hyper_node: str) -> Solution | None:
    """The same for all sub-jobs together, where one after the other they do not fit."""
    arrangement = arranged_sub_jobs(session, queue, job, sheet, hyper_node)
    if arrangement is None:
        return None
    placed, places = arrangement
    statement = Statement(session)
    whole = all(
        session.limits.allocatable(queue, t) and place(session, statement, t, node) is None for t, node in placed
    )
    steps = list(statement.steps)
    whole = whole and (session.states.job_ready(job) or session.states.job_pipelined(job))
    statement.discard()
    if not whole:
        return None
    chosen = {task.slot for task, _ in placed}
    left = sheet.clone()
    for uid, tasks in sheet.tasks.items():
        refill(left.tasks[uid], [t for t in tasks if t.slot not in chosen])
        if not left.tasks[uid]:
            del left.tasks[uid]
    return Solution(hyper_node, steps, left, 0.0, places)


def _allocate_sub_job(
    session: Session, queue: Queue, job: SessionJob, sub: SubJob, sheet: Worksheet, hyper_node: str
) -> tuple[Statement | None, float]:
    """Place a sub-job below a HyperNode, in the best one of its own gradient; placed tasks leave the worksheet."""
    topology = session.topology
    tasks = sheet.tasks[sub.uid]
    if sub.nominated_hyper_node:
        statement = place_as_nominated(session, queue, job, sub, tasks.copy())
        if statement is not None:
            del sheet.tasks[sub.uid]
            return statement, 0.0
    gradients = session.network.sub_job_gradients(job, sub, hyper_node, ALLOCATE)
    if not any(gradients) and session.deviations.explain_topology:
        request = sub.pending_request(session.statuses)
        job.job_fit_errors = _nowhere(sub.constraint, sub.allocated_hyper_node, hyper_node, request)
    for gradient in gradients:
        found = _best_place(session, queue, job, sub, tasks, gradient)
        if found is None:
            continue
        chosen, rate, steps, left = found
        statement = Statement(session)
        if statement.replay(steps) is not None:
            statement.discard()
            return None, 0.0
        sub.allocated_hyper_node = topology.lowest_common(sub.allocated_hyper_node, chosen)
        if left:
            sheet.tasks[sub.uid] = left
        else:
            del sheet.tasks[sub.uid]
        return statement, rate
    return None, 0.0


def _best_place(
    session: Session, queue: Queue, job: SessionJob, sub: SubJob, tasks: TaskQueue, hyper_nodes: list[str]
) -> tuple[str, float, list[StatementStep], TaskQueue] | None:
    """The HyperNode with the highest score in which the sub-job fits: its name, score, the steps, and the tasks left
    over.

    HyperNodes are tried in the order of their scores, and the first one that works is used. Only among equal scores
    does the score depend on the other HyperNodes (Volcano prefers the one that already has more of the sub-job's
    tasks).
    """
    if session.events.placements_leave_traces:
        return _best_of_all(session, queue, job, sub, tasks, hyper_nodes)
    single = {name: session.network.hyper_node_scores(sub, [name])[name] for name in hyper_nodes}
    for rate in sorted(set(single.values()), reverse=True):
        equals = sorted(name for name in hyper_nodes if single[name] == rate)
        together = session.network.hyper_node_scores(sub, equals) if len(equals) > 1 else single
        preferred = any(together[name] != rate for name in equals)
        first: tuple[str, list[StatementStep], TaskQueue] | None = None
        for name in sorted(equals, key=lambda n: -together[n]):
            job.forget_fit_errors(sub)
            todo = tasks.copy()
            trial, _ = place_tasks(session, queue, job, todo, sub, name)
            if not trial.steps:
                continue
            steps = list(trial.steps)
            trial.discard()
            if first is not None:
                return first[0], together[first[0]], first[1], first[2]
            first = (name, steps, todo)
            if not preferred:
                break
        if first is not None:
            return first[0], rate, first[1], first[2]
    return None


def _best_of_all(
    session: Session, queue: Queue, job: SessionJob, sub: SubJob, tasks: TaskQueue, hyper_nodes: list[str]
) -> tuple[str, float, list[StatementStep], TaskQueue] | None:
    """The same with every HyperNode tried, as in Volcano, if dry runs change later decisions."""
    found: dict[str, tuple[list[StatementStep], TaskQueue]] = {}
    for name in hyper_nodes:
        job.forget_fit_errors(sub)
        todo = tasks.copy()
        trial, _ = place_tasks(session, queue, job, todo, sub, name)
        if trial.steps:
            found[name] = (list(trial.steps), todo)
            trial.discard()
    if not found:
        return None
    scores = session.network.hyper_node_scores(sub, sorted(found))
    best = min(found, key=lambda name: (-scores[name], name))
    return best, scores[best], *found[best]
