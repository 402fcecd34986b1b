"""The HyperNodes of jobs when a session opens. Volcano: OpenSession's recovery of AllocatedHyperNode, and what
UpdateJobStatus copies back.

With the deviation topology-from-pods they are derived from the pods in every session. Volcano keeps what it decided
earlier, and derives only what it has not kept.
"""

from __future__ import annotations

from volcano_py.scheduler.framework.extension_points.open_session import OpenSession
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.jobs.sub_job import SubJob
from volcano_py.scheduler.model.jobs import status as st


def locate(session: OpenSession, job: SessionJob) -> None:
    """Set `allocated_hyper_node` of a job and its sub-jobs, unless its domain is one of a node label."""
    if job.model.topology_key or job.model.tree is not None:
        return
    if session.deviations.topology_from_pods:
        _from_pods(session, job)
    else:
        _from_memory(session, job)


def _from_pods(session: OpenSession, job: SessionJob) -> None:
    if not session.topology_is_ready:
        return
    for sub in job.sub_jobs.values():
        # The HyperNode of a sub-job without a constraint counts for its job, if the job has a constraint.
        if sub.constraint is not None or job.constraint is not None:
            sub.allocated_hyper_node = _around(session, sub)
            job.allocated_hyper_node = session.topology.lowest_common(
                sub.allocated_hyper_node, job.allocated_hyper_node
            )


def _from_memory(session: OpenSession, job: SessionJob) -> None:
    topology, memory = session.topology, job.model.allocated_hyper_nodes
    job.allocated_hyper_node = memory.get("", "")
    for sub in job.sub_jobs.values():
        sub.allocated_hyper_node = memory.get(sub.uid, "")
    if not session.topology_is_ready:
        return
    if job.allocated_hyper_node not in topology.infos or not _holds(job.counts):
        job.allocated_hyper_node = ""
    found = False
    for sub in job.sub_jobs.values():
        if sub.allocated_hyper_node not in topology.infos or not _holds(sub.counts):
            sub.allocated_hyper_node = ""
        if sub.constraint is not None and not sub.allocated_hyper_node:
            sub.allocated_hyper_node = _around(session, sub)
            found |= bool(sub.allocated_hyper_node)
    if found or (not job.allocated_hyper_node and job.has_topology):
        common = ""
        for sub in job.sub_jobs.values():
            common = topology.lowest_common(sub.allocated_hyper_node, common)
        job.allocated_hyper_node = common or job.allocated_hyper_node


def remember(session: OpenSession) -> None:
    """At the close: store the HyperNodes for the next session."""
    if session.deviations.topology_from_pods:
        return
    for job in session.jobs.active():
        if job.sub_jobs:
            where = {"": job.allocated_hyper_node, **{s.uid: s.allocated_hyper_node for s in job.sub_jobs.values()}}
            job.model.allocated_hyper_nodes = {uid: name for uid, name in where.items() if name}


def _holds(counts: list[int]) -> bool:
    return any(n and st.IS_ALLOCATED[status] for status, n in enumerate(counts))


def _around(session: OpenSession, sub: SubJob) -> str:
    """The lowest HyperNode that contains all placed tasks."""
    placed = (t for t in sub.tasks.values() if st.IS_ALLOCATED[session.statuses[t.slot]])
    nodes = (session.table.index.get(t.node) for t in placed)
    return session.topology.around(n for n in nodes if n is not None)
