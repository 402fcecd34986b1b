"""The request bodies of an extender: tasks, nodes, jobs and queues with Volcano's field names."""

from __future__ import annotations

from typing import Any

import msgspec

from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.queue import Queue
from volcano_py.scheduler.model.resource import Resource

Body = dict[str, Any]


def resource(amount: Resource) -> Body:
    """Milli-cores, bytes, and thousandths of everything else."""
    scalars = dict(amount.scalars) if amount.scalars else {}
    return {"MilliCPU": amount.milli_cpu, "Memory": amount.memory, "ScalarResources": scalars}


class Snapshot:
    """The nodes and tasks of a session, kept for bodies that are created after the session."""

    def __init__(self, session: Session) -> None:
        self.names = list(session.table.names)
        self._objects = list(session.table.objects)
        self._rows = dict(session.table.rows)
        self._numbers = session.numbers
        self._statuses = session.statuses

    def task(self, t: Task, node: int | None = None) -> Body:
        """A task; `node`: the column of the node that it gets or leaves."""
        return {
            "UID": t.uid,
            "Job": t.job,
            "Name": t.name,
            "Namespace": t.namespace,
            "TaskRole": t.role,
            "Resreq": resource(t.request),
            "InitResreq": resource(t.request),
            "Priority": t.priority,
            "Preemptable": t.preemptable,
            "BestEffort": t.best_effort,
            "TransactionContext": {
                "NodeName": t.node if node is None else self.names[node],
                "Status": st.STATUS_NAMES[self._statuses[t.slot]],
            },
            "Pod": msgspec.to_builtins(t.pod),
        }

    def node(self, column: int) -> Body:
        """A node with its sums."""
        sums = {}
        for field in ("allocatable", "idle", "used", "releasing", "pipelined"):
            values = getattr(self._numbers, field)
            amounts = {name: values.item(row, column) for name, row in self._rows.items() if row < len(values)}
            sums[field.capitalize()] = {
                "MilliCPU": amounts.pop("cpu", 0.0),
                "Memory": amounts.pop("memory", 0.0),
                "ScalarResources": {name: amount for name, amount in amounts.items() if amount},
            }
        return {"Name": self.names[column], "Node": msgspec.to_builtins(self._objects[column]), **sums}

    def nodes(self) -> list[Body]:
        """All nodes."""
        return [self.node(column) for column in range(len(self.names))]


def job(j: SessionJob) -> Body:
    return {
        "UID": j.uid,
        "Name": j.name,
        "Namespace": j.namespace,
        "Queue": j.queue,
        "Priority": j.priority,
        "MinAvailable": j.min_available,
        "Allocated": resource(j.allocated),
        "PodGroup": msgspec.to_builtins(j.pod_group),
    }


def queue(q: Queue) -> Body:
    return {"UID": q.name, "Name": q.name, "Weight": q.weight, "Queue": msgspec.to_builtins(q.object)}
