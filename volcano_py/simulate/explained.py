"""Explains a job of a model, by a cycle that does not change the model."""

from __future__ import annotations

from typing import Any

from volcano_py.scheduler.explain.explanation import Explanation, explain, pending_because
from volcano_py.scheduler.explain.table import OUTRANKED
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.simulate.unblock.trials import Edit, Trials

_CAPACITY = frozenset(
    (
        "NodeResources",
        "GangTooLarge",
        "NodePodLimit",
        "NodePorts",
        "QueueLimit",
        "QueueShare",
        "QueueOverused",
        "EnqueueQueueLimit",
        "EnqueueClusterFull",
        "TopologyDomainFull",
        "GroupDomainFull",
        "GroupDoesNotFit",
        "DevicesUnavailable",
        "PodAffinity",
        "PodTopologySpread",
    )
)
"""Blockers that jobs before this one in the queue may cause."""


def explained(trials: Trials, uid: str) -> Explanation:
    """Why the job `namespace/podgroup` does not run. If the job would start without other jobs that come first in this
    cycle, these are the first blocker."""
    session = trials.session()
    found = explain(session, uid)
    if not found.blockers or found.blockers[0].code not in _CAPACITY or uid not in session.jobs:
        return found
    job = session.jobs[uid]
    ahead = [j for j in session.jobs.active() if j is not job and j.counts[st.BINDING] and _pending(j)]
    if "queue" in found.blockers[0].fields:  # jobs of other queues cause the limit, they do not come before the job
        ahead = [j for j in ahead if j.queue == job.queue]
    ahead.sort(key=lambda j: (j.queue != job.queue, session.orders.job_key(j)))
    edits = [Edit("Pod", t.namespace, t.name) for j in ahead for t in j.model.tasks.values() if not t.node]
    if not ahead or not trials.starts(uid, edits):
        return found
    waiting = [j for j in session.jobs.active() if j.queue == job.queue and _pending(j)]
    waiting.sort(key=lambda j: _place(session, j))
    position, other = waiting.index(job) + 1, ahead[0]
    first = OUTRANKED.because(
        queue=job.queue, ahead=other.uid, other=other.queue, position=position, waiting=len(waiting)
    )
    return pending_because(found, [first, *found.blockers])


def _pending(job: SessionJob) -> bool:
    """Whether some of its pods had no node before this session."""
    return job.model.counts[st.PENDING] > 0


def _place(session: Session, job: SessionJob) -> tuple[Any, ...]:
    """The position in the queue: jobs that were served come first."""
    return (job.counts[st.BINDING] == 0, session.orders.job_key(job))
