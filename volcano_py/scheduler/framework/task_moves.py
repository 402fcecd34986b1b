"""Moving tasks within a session: what a placement or an eviction changes in the session's numbers. Volcano: the
methods of Session and Statement behind Allocate, Pipeline and Evict.

A Statement moves tasks so that it can undo everything; `allocate`, `bind` and `evict` decide at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.framework.extension_points.binding import Binding
from volcano_py.scheduler.framework.extension_points.events import Events, Handler
from volcano_py.scheduler.framework.extension_points.jobs import JobStates
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.jobs.session_jobs import SessionJobs
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.nodes.node_table import NodeNumbers
from volcano_py.scheduler.model.plan import Emit, Evict, RemoveGate
from volcano_py.scheduler.model.resource import EPS


class TaskMoves:
    """What is placed, held and evicted in this session, and the moves that change it with the numbers and statuses.

    statuses: the status of each task, by slot; written here and read everywhere
    """

    def __init__(
        self,
        cluster: Cluster,
        numbers: NodeNumbers,
        statuses: bytearray,
        jobs: SessionJobs,
        emit: Emit,
        *,
        states: JobStates,
        binding: Binding,
        events: Events,
    ) -> None:
        self.cluster = cluster
        self.table = cluster.nodes
        self.numbers = numbers
        self.statuses = statuses
        self.jobs = jobs
        self.emit = emit
        self._states = states
        self._binding = binding
        self._events = events
        self.placed: dict[int, int] = {}
        """Node column by task slot, for tasks that this session has placed."""
        self.held: dict[int, NDArray[np.float64]] = {}
        """The part of a node's idle capacity that is kept for a pipelined task, by the task's slot."""
        self.bound_on: dict[int, list[Task]] = {}
        """Tasks that this session binds, by node column."""
        self.evicting: set[int] = set()
        """Slots of pipelined tasks for which pods were evicted."""

    def node_of(self, task: Task) -> int | None:
        """The column of the task's node, also if this session has placed it."""
        if task.slot in self.placed:
            return self.placed[task.slot]
        return self.table.index.get(task.node) if task.node else None

    @property
    def removes_queue_gates(self) -> bool:
        """Whether pods have a gate until their queue has capacity. Volcano: SchedulingGatesQueueAdmission."""
        return "SchedulingGatesQueueAdmission" in self.cluster.features

    def remove_queue_gate(self, task: Task) -> None:
        """Remove the gate of a task whose queue has capacity. It can be placed once the API server returns the pod
        without the gate. Volcano: the scheduling gate manager."""
        if self.removes_queue_gates and self.cluster.reported.gates_removed.get(task.key) != task.pod.metadata.uid:
            self.emit([RemoveGate(task.namespace, task.name, task.pod.metadata.uid)])

    def cannot_place(self, task: Task, node: int) -> str | None:
        """Why a task cannot get a node at all; None: it can."""
        if not 0 <= node < len(self.table.names):
            return f"node {node} does not exist; the session has the nodes 0 to {len(self.table) - 1}"
        if self.statuses[task.slot] != st.PENDING:
            state = st.STATUS_NAMES[self.statuses[task.slot]]
            return f"task {task.key} is {state}; only a Pending task can get a node"
        return None

    def lacks(self, task: Task, node: int) -> str | None:
        """What a node lacks for a task now, in Volcano's words; None: the task fits."""
        idle, request = self.numbers.idle, task.spec_class.vector(self.table)
        for row in task.spec_class.checked_rows(self.table):
            if request.item(row) - idle.item(row, node) >= EPS:
                return f"node {self.table.names[node]} resources are not enough to put task {task.key}"
        return None

    def move(self, task: Task, new: int) -> None:
        """Change a task's status and the counts of its job."""
        old = self.statuses[task.slot]
        self.statuses[task.slot] = new
        job = self.jobs.get(task.job)
        if job is not None:
            job.moved(task, old, new)

    def place(self, task: Task, node: int, new: int, hold: bool = False) -> str | None:
        """Put a task on a node as Allocated or Pipelined; returns the last error of a handler, if any.

        `hold`: for a pipelined task, reserve also what is idle on the node now.
        """
        self.move(task, new)
        self.placed[task.slot] = node
        n = self.numbers
        if new == st.PIPELINED:
            n.pipelined[:, node] += task.spec_class.vector(self.table)
            n.future_differs = True
            if hold:
                self._keep_idle(task, node)
        else:
            n.held[:, node] += task.spec_class.usage(self.table, n).held
        error = self._events.allocated(task, node)
        n.log.add(node)
        return error

    def place_run(self, job: SessionJob, tasks: list[Task], nodes: list[int], handlers: Sequence[Handler]) -> bool:
        """Allocate equal tasks of a job, which has no sub-jobs, to nodes; False: a handler raised, and nothing has
        changed."""
        for task in tasks:
            self.statuses[task.slot] = st.ALLOCATED
        job.moved(tasks[0], st.PENDING, st.ALLOCATED, len(tasks))
        self.placed.update(zip((task.slot for task in tasks), nodes, strict=True))
        n = self.numbers
        columns, counts = np.unique(np.array(nodes, dtype=np.intp), return_counts=True)
        amounts = tasks[0].spec_class.vector(self.table)[:, None] * counts
        n.idle[:, columns] -= amounts
        n.used[:, columns] += amounts
        n.log.add_all(columns.tolist())
        for i, handler in enumerate(handlers):
            try:
                assert handler.allocate_run is not None
                handler.allocate_run(tasks, nodes)
            except Exception as e:
                self._events.callbacks.fault(handler.plugin, "allocate_event", e, tasks[0].key)
                self._unplace_run(tasks, handlers[:i])
                return False
        return True

    def _unplace_run(self, tasks: list[Task], handlers: Sequence[Handler]) -> None:
        """Undo the placement of a run; `handlers`: those that were called for it."""
        n = self.numbers
        for task in reversed(tasks):
            node = self.placed.pop(task.slot)
            n.held[:, node] -= task.spec_class.usage(self.table, n).held
            n.log.add(node)
            self.move(task, st.PENDING)
            self._events.deallocated(task, node, handlers)

    def move_to_binding(self, bound: Sequence[tuple[Task, int]]) -> None:
        """Change the status of placed tasks to Binding."""
        for task, node in bound:
            self.bound_on.setdefault(node, []).append(task)
        if len(bound) == 1:
            self.move(bound[0][0], st.BINDING)
            return
        for _, group in groupby((task for task, _ in bound), key=self._moves_like):
            tasks = list(group)
            first, old = tasks[0], self.statuses[tasks[0].slot]
            job = self.jobs.get(first.job)
            if job is not None and not job.sub_jobs:
                job.moved(first, old, st.BINDING, len(tasks))
            for task in tasks:
                self.statuses[task.slot] = st.BINDING
                if job is not None and job.sub_jobs:
                    job.moved(task, old, st.BINDING)

    def _moves_like(self, task: Task) -> tuple[str, int, str, int]:
        """A key: tasks with equal keys change the counts of their job in the same way."""
        return task.job, task.spec_class.id, task.role, self.statuses[task.slot]

    def unplace(self, task: Task) -> None:
        """Undo a placement: the task is Pending again."""
        node = self.placed[task.slot]
        n = self.numbers
        if self.statuses[task.slot] == st.PIPELINED:
            n.pipelined[:, node] -= task.spec_class.vector(self.table)
            self._release_idle(task, node)
        else:
            n.held[:, node] -= task.spec_class.usage(self.table, n).held
        self.move(task, st.PENDING)
        self._events.deallocated(task, node)
        del self.placed[task.slot]
        self.evicting.discard(task.slot)
        n.log.add(node)

    def hold(self, task: Task, node: int) -> None:
        """Reserve capacity for a task that stays Pending: it is not available to other tasks, now or later."""
        n = self.numbers
        n.pipelined[:, node] += task.spec_class.vector(self.table)
        n.future_differs = True
        self._keep_idle(task, node)
        self._events.held(task, +1)
        n.log.add(node)

    def release(self, task: Task, node: int) -> None:
        """The opposite of `hold`."""
        n = self.numbers
        n.pipelined[:, node] -= task.spec_class.vector(self.table)
        self._release_idle(task, node)
        self._events.held(task, -1)
        n.log.add(node)

    def _keep_idle(self, task: Task, node: int) -> None:
        """Reserve the idle part of the capacity that a pipelined task waits for."""
        n = self.numbers
        held = self.held[task.slot] = np.minimum(np.maximum(n.idle[:, node], 0.0), task.spec_class.vector(self.table))
        n.idle[:, node] -= held
        n.pipelined[:, node] -= held

    def _release_idle(self, task: Task, node: int) -> None:
        held = self.held.pop(task.slot, None)
        if held is not None:
            self.numbers.idle[:, node] += held
            self.numbers.pipelined[:, node] += held

    def start_eviction(self, task: Task) -> None:
        """Change the task to Releasing: its capacity becomes available later."""
        node = self.node_of(task)
        self.move(task, st.RELEASING)
        if node is not None:
            self.numbers.releasing[:, node] += task.spec_class.vector(self.table)
            self.numbers.future_differs = True
            self._events.deallocated(task, node)
            self.numbers.log.add(node)

    def undo_eviction(self, task: Task) -> None:
        """Undo an eviction: the task is Running (even if it was only Bound, as in Volcano)."""
        node = self.node_of(task)
        self.move(task, st.RUNNING)
        if node is not None:
            self.numbers.releasing[:, node] -= task.spec_class.vector(self.table)
            self._events.allocated(task, node)
            self.numbers.log.add(node)

    # ---- deciding at once -------------------------------------------------------------------------------

    def allocate(self, task: Task, node: int) -> str | None:
        """Place a task, and if its job is then ready, bind all allocated tasks of the job. Returns why not all could be
        bound."""
        self.place(task, node, st.ALLOCATED)
        job = self.jobs[task.job]
        return self.bind_allocated(job) if self._states.job_ready(job) else None

    def bind_allocated(self, job: SessionJob) -> str | None:
        """Bind all allocated tasks of a job. Returns why not all could be bound."""
        allocated = (t for t in job.tasks.values() if self.statuses[t.slot] == st.ALLOCATED)
        return self.bind(sorted(allocated, key=lambda t: t.key))

    def bind(self, tasks: Sequence[Task]) -> str | None:
        """Bind tasks together, up to the first whose node lacks capacity. Returns the reason, in Volcano's words."""
        bound, error = [], None
        for t in tasks:
            node = self.placed[t.slot]
            if not self._has_capacity(t, node):
                error = f"node {self.table.names[node]} resources are not enough to put task {t.key}"
                break
            self.move(t, st.BINDING)
            self.bound_on.setdefault(node, []).append(t)
            bound.append((t, node))
        operations = self._binding.binds(bound)
        if operations:
            self.emit(operations)
        return error

    def _has_capacity(self, task: Task, node: int) -> bool:
        """Whether a node has capacity for a task, counting only the tasks that are bound there.

        Best-effort tasks are placed without a check of capacity, also where other tasks are allocated but not bound.
        Volcano: the cache's check of a Binding task.
        """
        rows = task.spec_class.checked_rows(self.table)
        taken = sum(t.spec_class.vector(self.table)[rows] for t in self.bound_on.get(node, ()))
        idle = self.cluster.nodes.numbers.idle[rows, node] - taken
        return bool((task.spec_class.vector(self.table)[rows] - idle < EPS).all())

    def may_evict_all(self, job: SessionJob) -> bool:
        """Whether each placed task of a job may be evicted."""
        placed = [t for t in job.tasks.values() if st.IS_ALLOCATED[self.statuses[t.slot]]]
        return all(t.preemptable and self.statuses[t.slot] in (st.BOUND, st.RUNNING) for t in placed)

    def evict(self, task: Task, reason: str) -> None:
        """Evict a task now."""
        self.start_eviction(task)
        self.emit([eviction(task, self.jobs.get(task.job), reason)])


def eviction(task: Task, job: SessionJob | None, reason: str, evictor: str = "") -> Evict:
    """The operation that evicts a task of a job."""
    has_group = job is None or not job.model.shadow
    return Evict(task.namespace, task.name, task.uid, task.job, reason, evictor, has_group=has_group)
