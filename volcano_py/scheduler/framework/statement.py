"""Statement: operations that are applied to the session at once, and then committed together or discarded.
Volcano: Statement."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from volcano_py.scheduler.framework.extension_points.events import Handler
from volcano_py.scheduler.framework.jobs.session_job import LastTry, SessionJob
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.task_moves import eviction
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.plan import Operation


class StatementStep(NamedTuple):
    """One applied operation: kind is "allocate", "pipeline" or "evict". `reason`: of an eviction; `evicted`:
    pods were evicted for a pipelined task; `before`: the decision of an earlier, discarded statement for the task."""

    kind: str
    task: Task
    node: int
    reason: str = ""
    evicted: bool = False
    before: LastTry | None = None


class Statement:
    """A log of its own steps, which can be undone."""

    __slots__ = ("_session", "evictor", "steps")

    def __init__(self, session: Session, evictor: str = "") -> None:
        self._session = session
        self.evictor = evictor
        """The job that pods are evicted for."""
        self.steps: list[StatementStep] = []

    def allocate(self, task: Task, node: int, *, fits: bool = False) -> str | None:
        """Assign a node to a task; returns an error, after which nothing has changed.

        The node filters are the caller's task (`session.placement`); that the task is pending and that the node has
        idle capacity for it is checked here, as Volcano's node does when a task is added. `fits`: the caller has just
        checked the capacity (`Placement.fits_now`).
        """
        moves = self._session.moves
        problem = moves.cannot_place(task, node)
        if problem is None and not fits:
            problem = moves.lacks(task, node)
        if problem is not None:
            return problem
        error = moves.place(task, node, st.ALLOCATED)
        if error is not None:
            moves.unplace(task)
            return error
        self.steps.append(StatementStep("allocate", task, node, before=self._tried_before(task)))
        return None

    def allocate_run(self, job: SessionJob, tasks: list[Task], nodes: list[int], handlers: list[Handler]) -> bool:
        """Assign nodes to equal tasks of a job; False: a handler raised, and nothing has changed."""
        if not self._session.moves.place_run(job, tasks, nodes, handlers):
            return False
        last = job.last_transaction or {}
        for task, node in zip(tasks, nodes, strict=True):
            self.steps.append(StatementStep("allocate", task, node, before=last.get(task.key)))
        return True

    def pipeline(self, task: Task, node: int, evicted: bool) -> str | None:
        """Assign a task capacity of a node that is being released; `evicted`: pods were evicted for it. Returns an
        error, after which nothing has changed."""
        if (problem := self._session.moves.cannot_place(task, node)) is not None:
            return problem
        hold = evicted and self._session.deviations.kept_nominations
        error = self._session.moves.place(task, node, st.PIPELINED, hold)
        if error is not None:
            self._session.moves.unplace(task)
            return error
        if evicted:
            self._session.moves.evicting.add(task.slot)
        else:
            self._session.moves.evicting.discard(task.slot)
        self.steps.append(StatementStep("pipeline", task, node, evicted=evicted, before=self._tried_before(task)))
        return None

    def evict(self, task: Task, reason: str) -> None:
        """Evict a task from its node. Raises ValueError for a task without one, such as a pending task."""
        node = self._session.node_of(task)
        if node is None and not task.node:
            state = st.STATUS_NAMES[self._session.statuses[task.slot]]
            raise ValueError(f"task {task.key} is {state} and has no node; only a task on a node can be evicted")
        self._session.moves.start_eviction(task)
        self.steps.append(StatementStep("evict", task, -1 if node is None else node, reason))

    def _tried_before(self, task: Task) -> LastTry | None:
        job = self._session.jobs.get(task.job)
        return job.last_transaction.get(task.key) if job is not None and job.last_transaction else None

    def undo_unneeded(self, holds: Callable[[], bool]) -> None:
        """Undo each eviction without which `holds` is still true, the last one first.

        The last eviction is not checked, because the caller evicts until `holds` is true.
        """
        session = self._session
        for step in [s for s in reversed(self.steps) if s.kind == "evict"][1:]:
            session.moves.undo_eviction(step.task)
            if holds():
                self.steps.remove(step)
            else:
                session.moves.start_eviction(step.task)

    @property
    def evictions(self) -> bool:
        return any(s.kind == "evict" for s in self.steps)

    def evictions_of(self, evictor: str) -> int:
        """How many pods of other jobs than this one are evicted."""
        return sum(s.kind == "evict" and s.task.job != evictor for s in self.steps)

    def merge(self, other: Statement) -> None:
        """Append another statement's steps."""
        self.steps += other.steps
        other.steps = []

    def replay(self, steps: Iterable[StatementStep]) -> str | None:
        """Repeat the steps of a discarded statement; stops at the first error and returns it."""
        for step in steps:
            job = self._session.jobs.get(step.task.job)
            if job is not None and job.last_transaction is not None and step.kind != "evict":
                job.last_transaction.pop(step.task.key, None)
                if step.before is not None:
                    job.last_transaction[step.task.key] = step.before
            error = None
            if step.kind == "evict":
                self.evict(step.task, step.reason)
            elif step.kind == "allocate":
                error = self.allocate(step.task, step.node)
            else:
                error = self.pipeline(step.task, step.node, step.evicted)
            if error is not None:
                return error
        return None

    def commit(self) -> None:
        """Emit the steps as one part of the plan. Pipelined tasks are pipelined in this session only."""
        session = self._session
        operations: list[Operation] = []
        bound: list[tuple[Task, int]] = []
        for kind, task, node, reason, *_ in self.steps:
            job = session.jobs.get(task.job)
            if job is not None and job.last_transaction is not None:
                job.last_transaction.pop(task.key, None)
            if kind == "evict":
                operations.append(eviction(task, job, reason, self.evictor))
            elif kind == "allocate":
                bound.append((task, node))
        self.steps = []
        session.moves.move_to_binding(bound)
        operations += session.binding.binds(bound)
        if operations:
            session.emit(operations)

    def discard(self) -> None:
        """Undo all steps, the last one first; jobs keep a record of what was possible."""
        session = self._session
        nominate_anyway = not session.deviations.stale_nominations
        for kind, task, node, _, evicted, _ in reversed(self.steps):
            job = session.jobs.get(task.job)
            if kind == "evict":
                session.moves.undo_eviction(task)
                continue
            if job is not None:
                if job.last_transaction is None:
                    job.last_transaction = {}
                # Volcano nominates the node although no pod is evicted there.
                tried = (session.statuses[task.slot], session.table.names[node], evicted and nominate_anyway)
                job.last_transaction[task.key] = tried
            session.moves.unplace(task)
        self.steps = []
