"""Changes by moves: pods that their users have declared movable, each to a node that it fits, so that a gang starts."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

import msgspec

from volcano_py.scheduler.framework.cause import Cause
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.network.job_domains import has_topology_below
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.plugins.consolidate.gang_plan import plan_for
from volcano_py.scheduler.plugins.consolidate.movable import movable_for, movable_pods, within_budgets
from volcano_py.simulate.unblock.suggestion import Change
from volcano_py.simulate.unblock.trials import Edit

replace = msgspec.structs.replace


def move_pods(session: Session, job: SessionJob, cause: Cause) -> Iterator[Change]:
    """The moves that the plugin consolidate would make, whether or not it is configured."""
    if has_topology_below(job) or job.has_policies or job.counts[st.PIPELINED]:
        return
    running = [task for each in session.jobs.active() if each is not job for task in each.tasks.values()]
    movable = movable_pods(session, [task for task in running if task.status == st.RUNNING], inf)
    priority = max((task.priority for task in job.tasks.values()), default=0)
    found = plan_for(session, job, movable_for(movable, priority)) if movable else None
    if found is None or not within_budgets(session, [task for task, _ in found.moved]):
        return
    names = session.table.names
    edits = [
        Edit(
            "Pod",
            task.namespace,
            task.name,
            replace(task.pod, spec=replace(task.pod.spec, node_name=names[node])),
        )
        for task, node in found.moved
    ]
    count = len(found.moved)
    pods = f"{count} pod{'s' if count > 1 else ''} that may be moved ({found.text(names)})"
    yield Change("move-pods", f"move {pods}, as the plugin consolidate does", edits)
