"""Pods whose PodGroup the controller is about to create: what is written when it does not. Volcano: nothing is written.

Normally the PodGroup exists within a second. Without a controller the pods would wait and nothing would state why.
"""

from __future__ import annotations

from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.plan import PodCondition

REPORT_AFTER = 30.0
"""Seconds after the creation of a pod without a PodGroup until this is reported."""


def report_awaited_groups(session: Session) -> None:
    """Write the condition of pods that have waited for their PodGroup for too long."""
    reported = session.cluster.reported.conditions
    conditions: list[PodCondition] = []
    for job in session.awaiting_group:
        for task in job.tasks.values():
            if task.status != st.PENDING or task.sched_gated:
                continue
            if session.now < job.created + REPORT_AFTER:
                session.wake_at(job.created + REPORT_AFTER)
                continue
            owner = task.pod.metadata.controller
            of = f" of {owner.kind} {owner.name}" if owner is not None else ""
            message = (
                f"waiting for the PodGroup{of}, which the PodGroup controller creates: there is none after "
                f"{REPORT_AFTER:.0f} s; check that the controller-manager runs and serves the scheduler "
                f"{task.pod.spec.scheduler_name} (its log, kubectl get podgroups)"
            )
            if reported.get(task.key) != ("Unschedulable", message):
                conditions.append(PodCondition(task.namespace, task.name, task.uid, "Unschedulable", message))
    if conditions:
        conditions.sort(key=lambda c: (c.namespace, c.name))
        session.emit(conditions)
