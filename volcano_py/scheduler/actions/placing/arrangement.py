"""Arrangements: nodes for the missing members of a gang that do not fit one after the other (deviation
what-fits-starts). Not in Volcano, whose gang waits then.

The members are placed largest first, each on the node where the least capacity remains. If that fails, decisions are
changed, the last one first, for gangs of at most `MOST_MEMBERS` members and for a limited number of steps, per gang and
per cycle.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.jobs.sub_job import SubJob
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.queue import Queue
from volcano_py.scheduler.model.resource import EPS

Bools = NDArray[np.bool_]
MOST_STEPS = 20_000
"""Steps of the search for one gang. A step compares amounts; where rules depend on other pods, a step that places a
member in the session counts `SESSION_STEPS`."""
MOST_STEPS_OF_CYCLE = 60_000
SESSION_STEPS = 25
STEPS_OF_MEMBER = 10
"""Steps that count for a member that is placed largest first: all nodes are compared at once."""
POD_NUMBER = "PodNumber"
"""The filter that counts pods, which the comparison of amounts includes."""
MOST_MEMBERS = 64
"""Gangs with more pending members are placed largest first, without a change of decisions."""
Placed = list[tuple[Task, int]]


class Effort:
    """The steps that remain in this cycle, and the gangs for which none was found."""

    def __init__(self) -> None:
        self.left = MOST_STEPS_OF_CYCLE
        self.failed: set[tuple[object, ...]] = set()


class Lacking(NamedTuple):
    """What a gang lacks until it can start: a number of members, and of these how many at least of some roles, or of
    some parts."""

    members: int
    roles: dict[str, int]


class Parts(NamedTuple):
    """Groups of members that count instead of their roles, with the nodes that are left out for each of them.

    `of`: the part of a task, by its slot.
    """

    of: dict[int, str]
    outside: dict[str, Bools | None]


def lacking(session: Session, job: SessionJob, sub: SubJob | None) -> Lacking:
    """What a job, or its sub-job, lacks."""
    gang = job if sub is None else sub
    count = gang.min_available - gang.ready_num - gang.pending_best_effort - gang.counts[st.PIPELINED]
    if sub is not None or not job.task_min_available or job.min_available < job.task_min_total:
        return Lacking(count, {})
    known = job.roles(session.statuses)
    roles = {}
    for role, minimum in job.task_min_available.items():
        counts = known.get(role)
        have = sum(counts[s] for s in (*st.READY, st.PIPELINED)) if counts else 0
        if minimum > have:
            roles[role] = minimum - have
    return Lacking(max(count, sum(roles.values())), roles)


def arranged(
    session: Session,
    queue: Queue,
    tasks: Sequence[Task],
    need: Lacking,
    outside: Bools | None = None,
    parts: Parts | None = None,
) -> Placed | None:
    """Nodes for as many of the pending tasks as a gang lacks; the session is unchanged. None: none were found.

    `outside`: nodes that are left out; with `parts`, those of each part.
    """
    if not 0 < need.members <= len(tasks):
        return None
    effort = session.shared(Effort, Effort)
    if effort.left <= 0 or (parts is None and _is_hopeless(session, tasks)):
        return None
    if parts is None:
        parts = Parts({t.slot: t.role for t in tasks}, dict.fromkeys((t.role for t in tasks), outside))
    shape = (
        tuple(sorted((t.spec_class.id, parts.of[t.slot]) for t in tasks)),
        need.members,
        tuple(sorted(need.roles.items())),
        tuple(sorted((part, None if o is None else o.tobytes()) for part, o in parts.outside.items())),
        session.numbers.log.position,
    )
    if shape in effort.failed:
        return None
    search = _Search(session, queue, tasks, need, parts, min(MOST_STEPS, effort.left))
    found = search.run()
    effort.left -= search.steps
    if found is None:
        effort.failed.add(shape)
    return found


def _is_hopeless(session: Session, tasks: Sequence[Task]) -> bool:
    """Whether the tasks are equal and rules do not depend on where they are placed: then every order is the same."""
    first = tasks[0]
    if any(t.spec_class is not first.spec_class or t.role != first.role for t in tasks):
        return False
    return session.rules.pre_predicate(first) is not None or not _is_live(session, first)


def _is_live(session: Session, task: Task) -> bool:
    """Whether nodes accept the task depending on the pods that are placed there in this session."""
    view = session.placement.view(task)
    return bool(view.domain_filters or view.gates or any(f.name != POD_NUMBER for f in view.filters))


_ClassKey = tuple[int, str]
"""Class of specs, and role or part."""


class _Class(NamedTuple):
    """Equal tasks: the nodes that accept them whatever is placed there, and what they request, by checked row."""

    nodes: Bools
    rows: list[int]
    needs: list[float]
    size: float


class _Search:
    """One search. `steps`: how many were needed."""

    def __init__(
        self, session: Session, queue: Queue, tasks: Sequence[Task], need: Lacking, parts: Parts, most: int
    ) -> None:
        self.steps = 0
        self._session = session
        self._queue = queue
        self._need = need
        self._most = most
        numbers = session.numbers
        free = numbers.idle + numbers.releasing - numbers.pipelined
        self._largest = np.maximum(free.max(axis=1, initial=0.0), 1.0)
        self._part = parts.of
        self._classes: dict[_ClassKey, _Class] = {}
        self._nowhere: set[_ClassKey] = set()
        """Classes that no node accepts."""
        self._live = False
        """Whether rules depend on the pods that the search places, so that it has to place them in the session."""
        accepted = [self._class_of(task, parts.outside[parts.of[task.slot]]) for task in tasks]
        self._tasks = sorted(
            (t for t, of in zip(tasks, accepted, strict=True) if of is not None),
            key=lambda t: (-self._class(t).size, *self._key(t), t.key),
        )
        useful = np.zeros(free.shape[1], dtype=bool)
        for of in self._classes.values():
            useful |= of.nodes
        self._columns = np.flatnonzero(useful).tolist()
        self._free = {node: free[:, node].tolist() for node in self._columns}
        self._placed: Placed = []

    def _key(self, task: Task) -> _ClassKey:
        return task.spec_class.id, self._part[task.slot]

    def _class(self, task: Task) -> _Class:
        return self._classes[self._key(task)]

    def _class_of(self, task: Task, outside: Bools | None) -> _Class | None:
        """The class of a task; None: no node accepts it."""
        session = self._session
        key = self._key(task)
        if key in self._nowhere:
            return None
        known = self._classes.get(key)
        if known is None:
            if session.rules.pre_predicate(task) is not None:
                return None  # it may depend on the task itself
            nodes = session.placement.accepted(task)
            if outside is not None:
                nodes = nodes & ~outside
            if not nodes.any():
                self._nowhere.add(key)
                return None
            vector, rows = task.spec_class.vector(session.table), task.spec_class.checked_rows(session.table)
            self._live = self._live or _is_live(session, task)
            size = max((vector.item(r) / self._largest.item(r) for r in rows), default=0.0)
            known = _Class(nodes, rows, [vector.item(r) for r in rows], size)
            self._classes[self._key(task)] = known
        return known

    def run(self) -> Placed | None:
        if self._is_impossible():
            return None
        found = self._place_largest_first()
        if found is None and len(self._tasks) <= MOST_MEMBERS:
            whole = self._descend(0, self._need.members, dict(self._need.roles))
            found = self._taken_back() if whole else None
        return found

    def _taken_back(self) -> Placed:
        """What is placed; it is undone."""
        found = list(self._placed)
        for task, node in reversed(found):
            self._undo(task, node)
        self._placed.clear()
        return found

    def _place_largest_first(self) -> Placed | None:
        """The smallest members that are enough, placed largest first without a change of decisions; None: one of them
        does not fit."""
        roles, others = dict(self._need.roles), self._need.members - sum(self._need.roles.values())
        chosen = set()
        for task in sorted(self._tasks, key=lambda t: self._class(t).size):
            part = self._part[task.slot]
            if roles.get(part, 0) > 0:
                roles[part] -= 1
            elif others > 0:
                others -= 1
            else:
                continue
            chosen.add(task.slot)
        free = np.array([self._free[node] for node in self._columns]).T
        for task in (t for t in self._tasks if t.slot in chosen):
            self.steps += STEPS_OF_MEMBER
            of = self._class(task)
            needs = np.array(of.needs)[:, None]
            left = free[of.rows] - needs
            fits = of.nodes[self._columns] & (left > -EPS).all(axis=0)
            rest = np.where(fits, (left / self._largest[of.rows][:, None]).sum(axis=0), np.inf)
            in_order = np.argsort(rest, kind="stable")[: int(fits.sum())] if self._live else [int(rest.argmin())]
            at = next((i for i in in_order if fits[i] and self._do(task, self._columns[i])), None)
            if at is None:
                self._taken_back()
                return None
            free[of.rows, at] -= of.needs
        return self._taken_back()

    def _is_impossible(self) -> bool:
        """Whether counts prove that the gang does not fit: by role, by class, or by the sum of a resource."""
        need = self._need
        roles = {role: sum(self._part[t.slot] == role for t in self._tasks) for role in need.roles}
        if len(self._tasks) < need.members or any(roles[role] < count for role, count in need.roles.items()):
            return True
        most = 0
        for key, of in self._classes.items():
            mine = sum(self._key(t) == key for t in self._tasks)
            most += min(mine, self._how_many(of, mine))
        if most < need.members:
            return True
        for row in {row for of in self._classes.values() for row in of.rows}:
            least = sorted(self._request(t, row) for t in self._tasks)[: need.members]
            if sum(least) > sum(max(free[row], 0.0) for free in self._free.values()) + EPS:
                return True
        return False

    def _how_many(self, of: _Class, most: int) -> int:
        """How many tasks of a class alone fit, up to a limit."""
        count = 0
        for node in self._columns:
            if of.nodes[node]:
                free = self._free[node]
                here = [int((free[r] + EPS) // n) for r, n in zip(of.rows, of.needs, strict=True) if n > 0]
                count += min(here, default=most)
                if count >= most:
                    return most
        return count

    def _request(self, task: Task, row: int) -> float:
        return task.spec_class.vector(self._session.table).item(row)

    def _descend(
        self, i: int, members: int, roles: dict[str, int], start: tuple[_ClassKey | None, int] = (None, -1)
    ) -> bool:
        """Place tasks from the i-th on; `start`: class and node of the previous task. Equal tasks are placed in the
        order of nodes, and if one of them is left out, so are those that follow it."""
        if members <= 0:
            return True
        task = self._tasks[i] if i < len(self._tasks) else None
        if task is None or len(self._tasks) - i < members:
            return False
        part = self._part[task.slot]
        needed = roles.get(part, 0)
        if needed or members > sum(roles.values()):
            floor = start[1] if start[0] == self._key(task) else -1
            for node in self._candidates(task, floor):
                if self.steps >= self._most:
                    return False
                if not self._do(task, node):
                    continue
                left = {**roles, part: needed - 1} if needed else roles
                if self._descend(i + 1, members - 1, left, (self._key(task), node)):
                    return True
                self._placed.pop()
                self._undo(task, node)
        following = i + 1
        while following < len(self._tasks) and self._key(self._tasks[following]) == self._key(task):
            following += 1
        return self._descend(following, members, roles)

    def _candidates(self, task: Task, floor: int) -> list[int]:
        """The nodes from `floor` on that have capacity for a task, those first on which the least remains; of nodes
        that are equal for all tasks one is enough."""
        of = self._class(task)
        known: set[tuple[object, ...]] = set()
        found: list[tuple[float, int]] = []
        for node in self._columns:
            if node < floor or not of.nodes[node]:
                continue
            free = self._free[node]
            self.steps += 1
            if any(n - free[r] >= EPS for r, n in zip(of.rows, of.needs, strict=True)):
                continue
            if not self._live and floor < 0:
                alike = (tuple(free), tuple(bool(c.nodes[node]) for c in self._classes.values()))
                if alike in known:
                    continue
                known.add(alike)
            rest = sum((free[r] - n) / self._largest.item(r) for r, n in zip(of.rows, of.needs, strict=True) if n > 0)
            found.append((rest, node))
        return [node for _, node in sorted(found)]

    def _do(self, task: Task, node: int) -> bool:
        if self._live:
            self.steps += SESSION_STEPS
            session = self._session
            if not session.limits.allocatable(self._queue, task) or not session.placement.accepted(task)[node]:
                return False
            status = st.ALLOCATED if session.placement.fits_now(task, node) else st.PIPELINED
            if session.moves.place(task, node, status) is not None:
                session.moves.unplace(task)
                return False
        self._count(task, node, -1)
        self._placed.append((task, node))
        return True

    def _undo(self, task: Task, node: int) -> None:
        if self._live:
            self._session.moves.unplace(task)
        self._count(task, node, +1)

    def _count(self, task: Task, node: int, sign: int) -> None:
        of, free = self._class(task), self._free[node]
        for row, amount in zip(of.rows, of.needs, strict=True):
            free[row] += sign * amount
