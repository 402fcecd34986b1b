"""The order in which a session is closed. Volcano: CloseSession."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from volcano_py.api.names import QUEUE_NAME
from volcano_py.scheduler.framework.network.hypernode_recovery import remember
from volcano_py.scheduler.framework.plugin import Plugin
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.group_names import NATIVE_KINDS, reference
from volcano_py.scheduler.model.plan import Event
from volcano_py.scheduler.session_close.awaited_groups import report_awaited_groups
from volcano_py.scheduler.session_close.native_groups import report_missing_group
from volcano_py.scheduler.session_close.pod_groups import close_jobs
from volcano_py.scheduler.session_close.queues import close_queues
from volcano_py.scheduler.session_close.waiting_pods import report_missing_pod_groups, report_missing_queue

Timer = Callable[[str, str], AbstractContextManager[None]]
"""timer("action", "allocate") wraps a part of the cycle, for metrics; the core itself has no clock."""


def close(session: Session, plugins: list[Plugin], timed: Timer) -> None:
    """Plugins first (gang writes its conditions), then statuses."""
    for plugin in plugins:
        with timed("plugin-close", plugin.name):
            try:
                plugin.on_session_close(session)
            except Exception as e:
                session.callbacks.fault(plugin.name, "on_session_close", e)
    close_jobs(session)
    close_queues(session)
    remember(session)
    for job in session.jobs_without_queue:
        group = job.pod_group
        if group is not None:
            field = f"the label {QUEUE_NAME}" if job.native is not None else "spec.queue"
            text = f"queue {job.queue} does not exist; create it or name another in {field}"
            if session.cluster.reported.events.get(reference(job.uid)) != text:
                meta, kind = group.metadata, reference(job.uid)[0]
                session.emit([Event(kind, meta.namespace, meta.name, meta.uid, "Warning", "Unschedulable", text)])
            report_missing_queue(session, job, text)
    for job in session.jobs_without_group:
        if reference(job.uid)[0] in NATIVE_KINDS:
            report_missing_group(session, job)
    if session.deviations.explain_pods:
        ours = (job for job in session.jobs_without_group if reference(job.uid)[0] not in NATIVE_KINDS)
        report_missing_pod_groups(session, ours)
    report_awaited_groups(session)
    for name, text in session.cluster.hyper_nodes.problems.items():
        if session.cluster.reported.events.get(("HyperNode", f"/{name}")) != text:
            uid = session.cluster.others["HyperNode"][name].metadata.uid
            session.emit([Event("HyperNode", "", name, uid, "Warning", "InvalidHyperNode", text)])
