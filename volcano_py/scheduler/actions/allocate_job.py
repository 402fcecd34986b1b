"""Placing a job with sub-jobs within the network's domains. Volcano: allocateForJob, allocateForSubJob.

Every HyperNode of a gradient is a dry run: place what can be placed, write it down, take it back. The best one is then
done again for good.
"""

from __future__ import annotations

from typing import NamedTuple

from volcano_py.scheduler.actions.place_tasks import place_as_nominated, place_tasks
from volcano_py.scheduler.actions.worksheet import Worksheet
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.session_job import SessionJob
from volcano_py.scheduler.framework.statement import Statement, Step
from volcano_py.scheduler.framework.sub_job import Constraint, SubJob
from volcano_py.scheduler.framework.topology import ROOT
from volcano_py.scheduler.framework.votes import ALLOCATE
from volcano_py.scheduler.model.queue import Queue
from volcano_py.scheduler.model.resource import Resource
from volcano_py.scheduler.model.task import Task


class Solution(NamedTuple):
    """What was done below one HyperNode, and what that leaves to do."""

    steps: list[Step]
    left: Worksheet
    score: float
    places: dict[str, str]
    """Where each sub-job then is: UID → HyperNode."""


def allocate_job(session: Session, queue: Queue, job: SessionJob, sheet: Worksheet) -> bool:
    """Place the job in the best HyperNode of the first gradient that has room; whether it is ready, and bound.

    What is left to do is written back into the worksheet.
    """
    votes = session.votes
    gradients = votes.job_gradients(job, ROOT, ALLOCATE)
    if not any(gradients) and session.on("explain-topology"):
        job.job_fit_errors = _nowhere(job.constraint, job.allocated_hyper_node, ROOT, job.min_resources)
    for gradient in gradients:
        solutions: dict[str, Solution] = {}
        for hyper_node in gradient:
            job.forget_fit_errors()
            found = _try(session, queue, job, sheet, hyper_node)
            if found is not None:
                solutions[hyper_node] = found
        if not solutions:
            continue
        chosen = max(sorted(solutions), key=lambda name: solutions[name].score)
        best = solutions[chosen]
        statement = Statement(session)
        sheet.tasks = best.left.tasks
        if statement.replay(best.steps) is not None or not votes.job_ready(job):
            return False
        statement.commit()
        _settle(session, job, chosen, best.places)
        return True
    return False


def _nowhere(constraint: Constraint | None, around: str, below: str, request: Resource | None) -> str:
    """What to say when the plugins name no HyperNode to try."""
    tier = constraint.tier if constraint is not None else None
    where = f" around {around}, where it is," if around else "" if below == ROOT else f" in {below}"
    return f"no HyperNode{where} of tier {tier} or below has room for {request or Resource()!r}"


def _settle(session: Session, job: SessionJob, hyper_node: str, places: dict[str, str]) -> None:
    """Remember where the job and its sub-jobs are now."""
    topology = session.topology
    job.allocated_hyper_node = topology.lowest_common(job.allocated_hyper_node, hyper_node)
    for uid, place in places.items():
        sub = job.sub_jobs[uid]
        sub.allocated_hyper_node = topology.lowest_common(sub.allocated_hyper_node, place)
        sub.nominated_hyper_node = ""


def _try(session: Session, queue: Queue, job: SessionJob, sheet: Worksheet, hyper_node: str) -> Solution | None:
    """Dry run below one HyperNode; None if the job would be neither ready nor pipelined."""
    votes = session.votes
    before = {uid: sub.allocated_hyper_node for uid, sub in job.sub_jobs.items()}
    left = sheet.clone()
    statements: list[Statement] = []
    score = 0.0
    order = left.order(session, job)[::-1]
    while order:
        sub = order.pop()
        statement, rate = _allocate_sub_job(session, queue, job, sub, left, hyper_node)
        if statement is None:
            continue
        statements.append(statement)
        score += rate
        if sub.uid in left.tasks:
            order.append(sub)
            order.sort(key=lambda s: (s.uid not in left.required, votes.sub_job_key(s)), reverse=True)
        if votes.job_ready(job):
            break
    steps = [step for s in statements for step in s.steps]
    good = bool(steps) and (votes.job_ready(job) or votes.job_pipelined(job))
    places = {uid: sub.allocated_hyper_node for uid, sub in job.sub_jobs.items() if sub.allocated_hyper_node}
    for statement in reversed(statements):
        statement.discard()
    for uid, old in before.items():
        job.sub_jobs[uid].allocated_hyper_node = old
    return Solution(steps, left, score, places) if good else None


def _allocate_sub_job(
    session: Session, queue: Queue, job: SessionJob, sub: SubJob, sheet: Worksheet, hyper_node: str
) -> tuple[Statement | None, float]:
    """Place a sub-job below a HyperNode, in the best of its own gradient; the worksheet loses what has a place."""
    votes, topology = session.votes, session.topology
    tasks = sheet.tasks[sub.uid]
    if sub.nominated_hyper_node:
        statement = place_as_nominated(session, queue, job, sub, list(tasks))
        if statement is not None:
            del sheet.tasks[sub.uid]
            return statement, 0.0
    gradients = votes.sub_job_gradients(job, sub, hyper_node, ALLOCATE)
    if not any(gradients) and session.on("explain-topology"):
        request = sub.pending_request(session.statuses)
        job.job_fit_errors = _nowhere(sub.constraint, sub.allocated_hyper_node, hyper_node, request)
    for gradient in gradients:
        solutions: dict[str, tuple[list[Step], list[Task]]] = {}
        for name in gradient:
            job.forget_fit_errors(sub)
            todo = list(tasks)
            trial, _ = place_tasks(session, queue, job, todo, sub, name)
            if trial.steps:
                solutions[name] = (list(trial.steps), todo)
                trial.discard()
        if not solutions:
            continue
        rates = votes.hyper_node_rates(sub, sorted(solutions))
        chosen = max(rates, key=lambda name: rates[name])
        steps, left = solutions[chosen]
        statement = Statement(session)
        if statement.replay(steps) is not None:
            statement.discard()
            return None, 0.0
        sub.allocated_hyper_node = topology.lowest_common(sub.allocated_hyper_node, chosen)
        if left:
            sheet.tasks[sub.uid] = left
        else:
            del sheet.tasks[sub.uid]
        return statement, rates[chosen]
    return None, 0.0
