"""explain: why a job does not run, computed from a session that has just closed. A pure function, for `simulate`,
`vcctl explain` and tests. Not in Volcano."""

from __future__ import annotations

from dataclasses import dataclass, field

from volcano_py.scheduler.explain import table
from volcano_py.scheduler.explain.blocker import causes
from volcano_py.scheduler.explain.table import sentence_of
from volcano_py.scheduler.explain.victims import victim_causes
from volcano_py.scheduler.framework.cause import Cause
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.group_names import NATIVE_KINDS, reference
from volcano_py.scheduler.model.jobs.native_gangs import NativeGroups

CAPACITY = frozenset(
    (
        "NodeResources",
        "GangTooLarge",
        "TopologyDomainFull",
        "LabelDomainFull",
        "GroupDomainFull",
        "GroupDoesNotFit",
        "QueueOverused",
        "NodePodLimit",
        "QueueLimit",
    )
)
"""Blockers that evictions could remove."""


@dataclass(frozen=True)
class Explanation:
    """The state of a job: pending, running, completed, or unknown if it is not in the model; and what it lacks."""

    job: str
    state: str
    verdict: str
    blockers: list[Cause] = field(default_factory=list)
    queue: str = ""
    running: int = 0
    pods: int = 0
    need: int = 0


def explain(session: Session, uid: str) -> Explanation:
    """Explain the job `namespace/podgroup`."""
    model = session.cluster.jobs.get(uid)
    if model is None:
        return Explanation(uid, "unknown", f"The scheduler has no job {uid}.")
    if model.pod_group is None:
        pods = len(model.tasks)
        return _waiting(uid, [missing_group(session.cluster.native_groups, uid, pods)], pods=pods)
    if model.queue not in session.queues:
        return _waiting(uid, [table.QUEUE_MISSING.because(queue=model.queue)], model.queue, len(model.tasks))
    job = session.jobs[uid]
    found = causes(session, job)
    started = job.counts[st.RUNNING] + job.counts[st.BOUND] + job.counts[st.BINDING] + job.counts[st.ALLOCATED]
    if not found:
        done = job.tasks and job.counts[st.SUCCEEDED] + job.counts[st.FAILED] == len(job.tasks)
        state, verb = ("completed", "has completed") if done else ("running", "runs")
        verdict = f"Job {uid} {verb}: {started} of {len(job.tasks)} pods have a node."
        return Explanation(uid, state, verdict, [], job.queue, started, len(job.tasks), job.min_available)
    if found[0].code in CAPACITY:
        found += _victims(session, job)
    return _waiting(uid, found, job.queue, len(job.tasks), started, job.min_available)


def missing_group(groups: NativeGroups, uid: str, pods: int) -> Cause:
    """Why a job has no PodGroup: it does not exist, or the native groups that its pods name are no tree."""
    if reference(uid)[0] not in NATIVE_KINDS:
        return table.POD_GROUP_MISSING.because(group=uid, pods=pods)
    return table.NATIVE_GROUP_UNUSABLE.because(problem=groups.obstacle(uid), pods=pods)


def pending_because(explanation: Explanation, blockers: list[Cause]) -> Explanation:
    """The same explanation with other blockers."""
    e = explanation
    return _waiting(e.job, blockers, e.queue, e.pods, e.running, e.need)


def _waiting(
    uid: str, found: list[Cause], queue: str = "", pods: int = 0, running: int = 0, need: int = 0
) -> Explanation:
    part = f"{running} of {pods} pods of job {uid} have a node" if running else f"Job {uid} is pending"
    return Explanation(uid, "pending", f"{part}: {sentence_of(found[0])}", found, queue, running, pods, need)


def _victims(session: Session, job: SessionJob) -> list[Cause]:
    pending = session.pending(job)
    return victim_causes(session, job, min(pending, key=session.orders.task_key)) if pending else []
