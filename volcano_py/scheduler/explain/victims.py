"""Why eviction does not help a job: the rules by which running pods are not its victims. Not in Volcano."""

from __future__ import annotations

from collections import Counter

from volcano_py.scheduler.explain import table
from volcano_py.scheduler.framework.cause import Cause
from volcano_py.scheduler.framework.extension_points.victims import Basis, EvictionContext
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.task import Task

_CODES = {
    Basis.RANK: "VictimsRank",
    Basis.PROTECTION: "VictimsProtected",
    Basis.GANG_MINIMUM: "VictimsGang",
    Basis.CLAIM: "VictimsWithinShare",
}
_LOOKED_AT = 400
"""Maximum number of candidates that are classified; the most frequent reason does not change with more."""


def victim_causes(session: Session, job: SessionJob, task: Task) -> list[Cause]:
    """The most frequent reasons why candidates are not victims; empty if no action evicts or nothing runs."""
    actions = session.configuration.actions
    found: list[tuple[str, Task]] = []
    if task.pod.spec.preemption_policy == "Never" and not {"preempt", "gangpreempt"}.isdisjoint(actions):
        return [table.NEVER_PREEMPTS.because()]
    for point, own_queue, names in (
        ("preemptable", True, ("preempt", "gangpreempt")),
        ("reclaimable", False, ("reclaim", "gangreclaim")),
    ):
        if any(name in actions for name in names):
            candidates = _candidates(session, job, own_queue)
            found += [(_why_not(session, point, job, task, victim), victim) for victim in candidates]
    counts = Counter(code for code, _ in found)
    return [table.VICTIMS[code].because(pods=n) for code, n in sorted(counts.items(), key=lambda c: (-c[1], c[0]))]


def _candidates(session: Session, job: SessionJob, own_queue: bool) -> list[Task]:
    found = []
    for other in session.jobs.values():
        if other is job or (other.queue == job.queue) is not own_queue:
            continue
        for victim in other.tasks.values():
            if session.status(victim) in (st.BOUND, st.RUNNING):
                found.append(victim)
                if len(found) == _LOOKED_AT:
                    return found
    return found


def _why_not(session: Session, point: str, job: SessionJob, task: Task, victim: Task) -> str:
    """The code of the first rule that excludes a candidate, evaluated for this candidate alone."""
    if not victim.preemptable:
        return "VictimsProtected"
    other = session.jobs[victim.job]
    if point == "reclaimable" and not session.queues[other.queue].reclaimable:
        return "VictimsProtected"
    for callback in session.callbacks.enabled(point):
        try:
            answer = callback.fn(task, [victim])
        except Exception:
            return "VictimsProtected"
        if answer is not None and not answer:
            if callback.plugin == "pdb":
                return "VictimsBudget"
            return _CODES[callback.basis or Basis.CLAIM]
    gang = EvictionContext("gang", job)
    if point == "preemptable" and not session.victims.of_later_jobs(gang, [victim]):
        return "VictimsRank"
    return "VictimsTooSmall"
