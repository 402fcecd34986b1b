"""A plan of a reservation on trial: how many of the gang's pods its nodes accept. Not in Volcano.

Plans are computed with resources. Host ports, anti-affinity, spread, devices and volumes also limit how many pods a
node holds. A trial evicts the pods that are expected to have ended by the start, places the gang's pods one by one, and
then undoes all of it. Gangs that no such filter applies to are not tried.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from math import inf

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.framework.reservations.earliest_start import GangMembers, Reserved
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.task import Task

Floats = NDArray[np.float64]
ROUNDS = 8
"""How many plans of a job are tried in a session."""
MOST_MOVES = 4_000
"""How many pods are evicted and placed at most in the trials of a job in a session, at about 0.1 ms each. A plan beyond
that counts without a trial."""


def first_accepted(
    session: Session,
    gang: Sequence[GangMembers],
    find: Callable[[], Reserved | None],
    ended: Callable[[int, float], Sequence[Task]],
    on_trial: Callable[[], AbstractContextManager[None]],
) -> Reserved | None:
    """The first plan whose nodes accept the gang; None: there is none, or it is not found in a few rounds.

    `find`: the earliest plan that `GangMembers.most` permits, which the trials reduce. `ended`: the pods of a node, by
    its column, that are expected to have ended by a time.
    """
    found = find()
    if not any(members.limited for members in gang):
        return found
    moves = 0
    for _ in range(ROUNDS):
        if found is None:
            return None
        leaving = [task for node in found.nodes.tolist() for task in ended(node, found.start)]
        moves += len(leaving) + sum(members.count for members in gang)
        if moves > MOST_MOVES:
            return found
        with on_trial():
            accepted = _accepted(session, gang, found, leaving)
        if all(np.array_equal(placed, planned) for placed, planned in zip(accepted, found.pods, strict=True)):
            return found
        for members, planned, placed in zip(gang, found.pods, accepted, strict=True):
            _reduce(members, planned, placed)
        found = find()
    return None


def _reduce(members: GangMembers, planned: Floats, placed: Floats) -> None:
    """Plan no more pods for a node than it has accepted, and for the others no more than the best of these."""
    short = placed < planned
    if short.any():
        best = float(placed.max()) or inf
        members.most = np.where(short, placed, np.minimum(members.most, best))


def _accepted(session: Session, gang: Sequence[GangMembers], plan: Reserved, leaving: Sequence[Task]) -> list[Floats]:
    """How many of the planned pods each node accepts, for each class of pods. Leaves the session unchanged."""
    moves, placed = session.moves, list[Task]()
    bound = [task for task in leaving if session.status(task) == st.BOUND]
    for task in leaving:
        moves.start_eviction(task)
    try:
        return [_place(session, members, planned, placed) for members, planned in zip(gang, plan.pods, strict=True)]
    finally:
        for task in reversed(placed):
            moves.unplace(task)
        for task in reversed(leaving):
            moves.undo_eviction(task)
        for task in bound:  # an undone eviction sets the status Running
            moves.move(task, st.BOUND)


def _place(session: Session, members: GangMembers, planned: Floats, placed: list[Task]) -> Floats:
    """One pod on each node in turn, as long as nodes accept them: rules of spread permit this order."""
    accepted, tasks = np.zeros_like(planned), list(members.tasks)
    before = -1.0
    while before < accepted.sum() < planned.sum():
        before = float(accepted.sum())
        for node in np.flatnonzero(accepted < planned).tolist():
            task = tasks[int(accepted.sum())]
            if not session.placement.accepts(task, node):
                continue
            error = session.moves.place(task, node, st.PIPELINED)
            placed.append(task)
            if error is not None:
                session.moves.unplace(placed.pop())
                continue
            accepted[node] += 1
    return accepted
