"""Volumes: rejects nodes that cannot use a pod's volumes. kube-scheduler: VolumeBinding.

The filter has two parts. What depends on the objects alone is computed once for each class of pods. Where claims
compete for existing volumes, each pod is evaluated by itself.
"""

from __future__ import annotations

from functools import partial
from typing import Literal

import numpy as np

from volcano_py.scheduler.framework.search.fit_errors import FitCode, Reason
from volcano_py.scheduler.framework.search.node_rules import DOMAIN, STATIC, Codes, Scope
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.claims.volume_demand import VolumeDemand
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.pre_bind import PreBindSteps
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.rules.kept_codes import KeptCodes
from volcano_py.scheduler.rules.volumes.binding import TEXTS, bound_codes, provision_codes
from volcano_py.scheduler.rules.volumes.steps import binding_steps
from volcano_py.scheduler.rules.volumes.volume_book import VolumeBook

REASONS = [Reason(text, FitCode.UNRESOLVABLE) for text in TEXTS[:-1]] + [Reason(TEXTS[-1], FitCode.ERROR)]
_TOGETHER = {(a, b): i for i, (a, b) in enumerate(((1, 2), (1, 3), (2, 4), (3, 4)), len(REASONS) + 1)}
"""The numbers of two reasons for one node, the first with the lower number: kube-scheduler states both."""
REASONS += [Reason(f"{REASONS[a - 1].text}, {REASONS[b - 1].text}", FitCode.UNRESOLVABLE) for a, b in _TOGETHER]


def book_of(session: Session) -> VolumeBook:
    """The VolumeBook of the session."""
    return session.shared(VolumeBook, lambda: VolumeBook(session.cluster))


class VolumeBindingRule:
    """Rejects nodes that cannot reach a bound volume, and nodes for which no volume can be provisioned."""

    name = "VolumeBinding"
    scope: Literal[Scope.STATIC] = STATIC
    reasons = REASONS

    def __init__(self, session: Session) -> None:
        self._session = session

    def applies(self, task: Task) -> bool:
        demand = task.claims.volumes
        return demand is not None and not demand.matched and bool(demand.bound or demand.missing or demand.waiting)

    def filter(self, task: Task) -> Codes:
        demand = task.claims.volumes
        assert demand is not None
        bound = bound_codes(self._session.cluster, demand)
        return _together(bound, provision_codes(book_of(self._session), demand))


class VolumeMatching:
    """Rejects nodes for claims that wait for their first consumer, if volumes exist or another pod also uses the
    claim."""

    name = "VolumeMatching"
    scope: Literal[Scope.DOMAIN] = DOMAIN
    reasons = REASONS

    def __init__(self, session: Session) -> None:
        self._session = session
        self._kept = KeptCodes(len(session.table))
        self._bound: dict[int, Codes] = {}

    def applies(self, task: Task) -> bool:
        demand = task.claims.volumes
        return demand is not None and demand.matched

    def filter(self, task: Task) -> Codes:
        demand = task.claims.volumes
        assert demand is not None
        book = book_of(self._session)
        codes = self._kept.of(task.spec_class.id, book.log, partial(book.code, demand.waiting, demand.provisions))
        return _together(self._of_bound(task, demand), codes)

    def _of_bound(self, task: Task, demand: VolumeDemand) -> Codes:
        """The codes of the claims that are bound; they do not change in a session."""
        found = self._bound.get(task.spec_class.id)
        if found is None:
            found = self._bound[task.spec_class.id] = bound_codes(self._session.cluster, demand)
        return found


def _together(bound: Codes, waiting: Codes) -> Codes:
    """The codes of nodes that cannot serve the bound claims, the waiting ones, or both."""
    codes = np.where(waiting == 0, bound, waiting)
    for (a, b), number in _TOGETHER.items():
        codes[((bound == a) & (waiting == b)) | ((bound == b) & (waiting == a))] = number
    return codes


def follow_volumes(session: Session) -> None:
    """Reserve and release volumes for the tasks that the session places and evicts."""
    book = book_of(session)
    # Not for a running pod whose eviction is undone: its volumes are not reserved when a session opens either.
    placed = (st.ALLOCATED, st.PIPELINED) if session.deviations.pipelined_claims else (st.ALLOCATED,)

    def place(task: Task, node: int) -> None:
        if task.claims.volumes is not None and session.status(task) in placed:
            book.place(task, node)

    def displace(task: Task, node: int) -> None:
        if task.claims.volumes is not None:
            book.displace(task, node)

    session.add_event_handler(place, displace, concerns=lambda task: task.claims.volumes is not None)


def volume_steps(session: Session, task: Task, timeout: float) -> PreBindSteps | None:
    """The writes that must succeed before a task with waiting claims is bound."""
    demand = task.claims.volumes
    if demand is None or not demand.waiting:
        return None
    decision = book_of(session).decisions.get(task.slot)
    if decision is None:
        return None
    node = session.table.names[session.moves.placed[task.slot]]
    exact = not session.deviations.shared_claims
    return PreBindSteps(binding_steps(decision, task.namespace, node, timeout, exact=exact), {})
