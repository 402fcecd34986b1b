"""The statuses of Reservations: phase, nodes, and what is used. Not in Volcano.

The decision core leaves them in `KeptWindows`; `cache.reservations` writes those that differ.
"""

from __future__ import annotations

import numpy as np

from volcano_py.api import reservation as api
from volcano_py.api.meta import format_time
from volcano_py.api.reservation import ReservationStatus
from volcano_py.scheduler.framework.advance.advance_book import AdvanceBook, KeptWindows
from volcano_py.scheduler.framework.advance.windows import ReservedWindow
from volcano_py.scheduler.framework.reservations.running_pods import running_pods
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.resource import Resource
from volcano_py.scheduler.model.resource_names import PODS

MOST_NODES = 1000
"""How many nodes a status names; `nodeCount` counts all."""


def state_statuses(session: Session, book: AdvanceBook) -> None:
    """Called at the close of a session."""
    kept = session.cluster.keep(KeptWindows)
    for name, (_, read) in kept.read.items():
        if isinstance(read, str):
            kept.statuses[name] = ReservationStatus(phase=api.INVALID, message=read)
    for window in book.windows:
        known = kept.statuses.get(window.name)
        kept.statuses[window.name] = _status(session, book, window, known)


def _status(
    session: Session, book: AdvanceBook, window: ReservedWindow, known: ReservationStatus | None
) -> ReservationStatus:
    phase = window.phase(session.now)
    status = ReservationStatus(
        phase=phase,
        start_time=format_time(window.start),
        end_time=format_time(window.end),
        message=book.problem(window),
    )
    if phase == api.ENDED:
        names = known.nodes if known is not None else window.known
        status.nodes, status.node_count, status.message = names, len(names or ()), ""
        return status
    names = [session.table.names[i] for i in book.nodes(window)]
    status.nodes, status.node_count = names[:MOST_NODES] or None, len(names)
    if phase == api.ACTIVE:
        used, others = _on_nodes(session, book, window)
        status.used = used or None
        if others and not status.message:
            status.message = (
                f"{others} pod{'s' if others > 1 else ''} of jobs that may not use its nodes still run there"
            )
    return status


def _on_nodes(session: Session, book: AdvanceBook, window: ReservedWindow) -> tuple[dict[str, str], int]:
    """What the pods request that may use the nodes, and the number of those that may not. Pods without a job, such as
    those of DaemonSets, are not counted."""
    pods, table = running_pods(session.cluster), session.table
    kept = session.cluster.keep(KeptWindows)
    version = (id(pods), pods.version, id(window), book.nodes(window))
    known = kept.on_nodes.get(window.name)
    if known is not None and known[0] == version:
        return known[1]
    here = np.zeros(len(table), dtype=bool)
    here[book.nodes(window)] = True
    used, others = np.zeros(len(pods.amounts)), 0
    for uid, places in pods.of.items():
        count = int(here[pods.nodes[places]].sum())
        if not count:
            continue
        job = session.cluster.jobs[uid]
        tasks = [
            t for t in job.tasks.values() if t.takes_capacity and t.node in table.index and here[table.index[t.node]]
        ]
        for task in tasks:
            if window.permits(job, book.queues_of(job), task.labels):
                used += task.spec_class.vector(table)
            else:
                others += 1
    total = Resource()
    for name, row in table.rows.items():
        if name != PODS and used[row] > 0:
            total[name] = float(used[row])
    kept.on_nodes[window.name] = version, (total.quantities(), others)
    return kept.on_nodes[window.name][1]
