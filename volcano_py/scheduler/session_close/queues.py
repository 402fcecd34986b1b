"""The status of queues, and Events on queues that contradict themselves or others. Volcano: updateQueueStatus."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from volcano_py.api import core, quantity
from volcano_py.api.scheduling import ROOT_QUEUE
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model import plan
from volcano_py.scheduler.model.claims.device_amounts import DeviceAmounts, add, as_quantities, requested
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.queue import Queue
from volcano_py.scheduler.model.resource import Resource
from volcano_py.scheduler.plugins.queue_shares.demand import held_by_others
from volcano_py.scheduler.plugins.queue_shares.guarantee import excess


@dataclass
class WrittenAmounts:
    """State between sessions: queues whose status.allocated is right, so that it is not formatted again."""

    of: dict[str, tuple[core.ResourceList | None, Resource, DeviceAmounts]] = field(default_factory=dict)
    """By queue: the field of the object, and the amounts that it was compared with."""


def close_queues(session: Session) -> None:
    """status.allocated of every queue: what its jobs and those of the queues below it hold."""
    kept = session.cluster.keep(WrittenAmounts)
    right = {}
    allocated = {name: Resource() for name in session.queues}
    devices = _devices(session)
    for name, held in _held_by_queue(session).items():
        queue = session.queues.get(name)
        for above in _upwards(session, queue) if queue is not None else ():
            allocated[above].add(held)
    for name, amount in allocated.items():
        queue = session.queues[name]
        old, known = queue.object.status.allocated, kept.of.get(name)
        if known is not None and known[0] is old and known[1] == amount and known[2] == devices[name]:
            right[name] = known
        else:
            new = {**amount.quantities(), **as_quantities(devices[name])}
            if _differ(new, old or {}):
                session.emit([plan.QueueStatus(name, new, queue.object.metadata.resource_version)])
            else:
                right[name] = old, amount, devices[name]
        _report_queue(session, queue)
    kept.of = right


def _differ(new: Mapping[str, quantity.Quantity], old: Mapping[str, quantity.Quantity]) -> bool:
    """Whether the amounts differ, and not only their texts."""
    if new.keys() != old.keys():
        return True
    return any(new[name] != old[name] and quantity.parse(new[name]) != quantity.parse(old[name]) for name in new)


def _devices(session: Session) -> dict[str, DeviceAmounts]:
    """The devices that the pods of each queue and of the queues below it hold; a shared claim counts once a queue."""
    found: dict[str, DeviceAmounts] = {name: {} for name in session.queues}
    if not session.cluster.claims.resource_claims.users:
        return found
    with_capacity = "DRAConsumableCapacity" in session.cluster.features
    counted: set[tuple[str, str]] = set()
    for job in session.jobs.values():
        for task in job.tasks.values() if job.allocated_num else ():
            if task.claims.devices is None or not st.IS_ALLOCATED[session.status(task)]:
                continue
            for above in _upwards(session, session.queues[job.queue]):
                for claim in task.claims.devices.claims:
                    if claim.claim is not None and (above, claim.key) not in counted:
                        counted.add((above, claim.key))
                        add(found[above], requested(claim.claim, with_capacity))
    return found


def _held_by_queue(session: Session) -> dict[str, Resource]:
    """What the jobs of each queue hold."""
    jobs: Iterable[SessionJob] = session.jobs.touched()
    found = held_by_others(session.cluster, (job.uid for job in jobs)) if session.deviations.bare_pods else None
    if found is None:
        found, jobs = {}, session.jobs.values()
    for job in jobs:
        if job.allocated_num:
            if job.queue not in found:
                found[job.queue] = Resource()
            found[job.queue].add(_held(session, job))
    return found


def _held(session: Session, job: SessionJob) -> Resource:
    """What the job holds; resources of which it has given all back in this session are not named."""
    if all((job.allocated.scalars or {}).values()):
        return job.allocated
    held = Resource()
    for task in job.tasks.values():
        if st.IS_ALLOCATED[session.status(task)]:
            held.add(task.request)
    return held


def _report_queue(session: Session, queue: Queue) -> None:
    """An Event on a queue that contradicts itself or others, when that has changed."""
    wrong = []
    names = excess(queue) if session.deviations.capability_first else ()
    if names:
        fields = " and ".join(f"spec.guarantee.resource.{name}" for name in names)
        what = "nothing above the capability is kept for the queue"
        wrong.append(f"{fields} above spec.capability: {what}; change one of them")
    if session.deviations.partial_hierarchy and queue.name in session.queue_faults:
        wrong.append(f"{session.queue_faults[queue.name]}. Until then it counts as a queue below root")
    text = ". ".join(wrong)
    if text and session.cluster.reported.events.get(("Queue", f"/{queue.name}")) != text:
        uid = queue.object.metadata.uid
        session.emit([plan.Event("Queue", "", queue.name, uid, "Warning", "InvalidQueue", text)])


def _upwards(session: Session, queue: Queue) -> list[str]:
    """The queue and its ancestors up to root; stops at an unknown or already visited queue."""
    found = [queue.name]
    if ROOT_QUEUE not in session.queues:
        return found
    while queue.name != ROOT_QUEUE:
        parent = session.queue_parents[queue.name] if session.deviations.partial_hierarchy else queue.parent
        above = session.queues.get(parent or ROOT_QUEUE)
        if above is None or above.name in found:
            break
        found.append(above.name)
        queue = above
    return found
