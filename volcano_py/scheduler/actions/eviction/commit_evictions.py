"""The end of preempt and reclaim for one job: its evictions are committed together, or discarded.

Unneeded evictions are undone first (deviation fewest-victims). Then gangs that fall below their minimum are evicted as
a whole (deviation whole-gangs), and native gangs with disruptionMode PodGroup in any case. Volcano: statement.Commit at
the end of preempt and reclaim.
"""

from __future__ import annotations

from volcano_py.scheduler.actions.eviction.victims.unit_plans import Members, without_needless
from volcano_py.scheduler.actions.eviction.will_start import will_start
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.statement import Statement, StatementStep
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.resource import EPS


def commit_evictions(session: Session, statement: Statement, job: SessionJob, reason: str) -> None:
    """Commit the evictions if they make the job pipelined and it needs them, else discard them."""
    good = will_start(session, job)
    if good:
        undo_needless(session, statement)
        good = not is_needless(session, statement)
    if good:
        evictions = statement.evictions_of(job.uid)
        good = _evict_whole_gangs(session, statement, reason)
        if good and session.deviations.whole_gangs and statement.evictions_of(job.uid) > evictions:
            # With the rest of a gang, another pod may be evicted without need.
            tasks = [step.task for step in statement.steps if step.kind == "pipeline"]
            found = without_needless(session, statement, Members(job, tasks, None, reason))
            if found is None:
                return
            statement = found
    statement.commit() if good else statement.discard()


def is_needless(session: Session, statement: Statement) -> bool:
    """Whether the job fits without an eviction, so that allocate places it. If an action before allocate pipelined the
    job in every cycle, the job would never be bound."""
    return session.deviations.sure_evictions and not statement.evictions


def undo_needless(session: Session, statement: Statement) -> None:
    """Undo each eviction without which all pipelined tasks still fit, the last eviction first.

    Evictions for one task of a gang may make earlier ones unneeded.
    """
    if not session.deviations.fewest_victims:
        return
    pipelined: dict[int, list[StatementStep]] = {}
    for step in statement.steps:
        if step.kind == "pipeline":
            pipelined.setdefault(step.node, []).append(step)
    for step in [s for s in reversed(statement.steps) if s.kind == "evict"]:
        if any(_lacks(session, p, step.task) for p in pipelined.get(step.node, ())):
            continue
        session.moves.undo_eviction(step.task)
        if all(_still_fits(session, p) for p in pipelined.get(step.node, ())):
            statement.steps.remove(step)
        else:
            session.moves.start_eviction(step.task)


def _lacks(session: Session, step: StatementStep, victim: Task) -> bool:
    """Whether a pipelined task lacks capacity on its node if the victim stays. The amounts decide in most cases, which
    is cheaper than undoing the eviction in every plugin."""
    n, node = session.numbers, step.node
    stays = victim.spec_class.vector(session.table)
    for row in step.task.spec_class.checked_rows(session.table):
        left = n.idle.item(row, node) + n.releasing.item(row, node) - n.pipelined.item(row, node)
        if stays.item(row) - left >= 2 * EPS:
            return True
    return False


def _still_fits(session: Session, step: StatementStep) -> bool:
    """Whether a task can still be pipelined on its node. What a victim frees can also be the limit of a queue."""
    task, node = step.task, step.node
    session.moves.unplace(task)
    fits = session.placement.fits_soon(task, node) and session.placement.accepts(task, node)
    if fits and session.deviations.sure_evictions:
        fits = session.limits.allocatable(session.queues[session.jobs[task.job].queue], task)
    session.moves.place(task, node, st.PIPELINED, hold=step.evicted and session.deviations.kept_nominations)
    if step.evicted:
        session.moves.evicting.add(task.slot)
    return fits


def _evict_whole_gangs(session: Session, statement: Statement, reason: str) -> bool:
    """Evict the rest of every gang that falls below its minimum, or is only evicted as a whole. False, without further
    evictions, if a task of the rest must not be evicted, or is being bound: its bind may still fail."""
    rest: list[Task] = []
    for job in _broken(session, statement, _keeps_gangs(session)):
        if not session.moves.may_evict_all(job):
            return False
        left = [t for t in job.tasks.values() if st.IS_ALLOCATED[session.status(t)]]
        if any(session.status(t) == st.BINDING for t in left):
            return False
        rest += sorted(left, key=lambda t: t.key)
    if len(session.victims.unprotected(rest)) < len(rest):
        return False
    for task in rest:
        statement.evict(task, reason)
    return True


def breaks_own_gang(session: Session, statement: Statement, job: SessionJob) -> bool:
    """Whether a job that evicts its own tasks is below its minimum until other tasks of it are placed."""
    lost = [s.task for s in statement.steps if s.kind == "evict" and s.task.job == job.uid]
    if lost and job.model.evicted_whole:
        return True
    return _keeps_gangs(session) and _falls(session, job, lost)


def _keeps_gangs(session: Session) -> bool:
    """Whether no gang may be destroyed: with the plugin gang, whatever its flags are."""
    return session.deviations.whole_gangs and session.victims.has_gangs


def _broken(session: Session, statement: Statement, keeps_gangs: bool) -> list[SessionJob]:
    """Gangs that had their minimum until this statement, and gangs that are only evicted as a whole; without the job
    that the statement is for."""
    lost: dict[str, list[Task]] = {}
    for step in statement.steps:
        if step.kind == "evict" and step.task.job != statement.evictor:
            lost.setdefault(step.task.job, []).append(step.task)
    jobs = [(session.jobs[uid], tasks) for uid, tasks in lost.items() if uid in session.jobs]
    return [job for job, tasks in jobs if job.model.evicted_whole or (keeps_gangs and _falls(session, job, tasks))]


def _falls(session: Session, job: SessionJob, lost: list[Task]) -> bool:
    """Whether the loss of these tasks brings the job below its minimum, of all tasks or of a role."""
    if job.ready_num + len(lost) < job.min_available:
        return False
    if job.ready_num < job.min_available:
        return True
    roles = {task.role for task in lost if job.task_min_available.get(task.role)}
    if not roles or job.check_task_ready(session.statuses):
        return False
    known = job.roles(session.statuses)
    for role in roles:
        have, minimum = sum(known[role][s] for s in st.READY), job.task_min_available[role]
        if have < minimum <= have + sum(t.role == role for t in lost):
            return True
    return False
