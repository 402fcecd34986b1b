"""Dynamic resource allocation: rejects nodes whose devices cannot serve a pod's ResourceClaims. kube-scheduler:
DynamicResources.
"""

from __future__ import annotations

from functools import partial
from typing import Literal

import numpy as np

from volcano_py.scheduler.framework.search.fit_errors import FitCode, Reason
from volcano_py.scheduler.framework.search.node_rules import DOMAIN, Codes, Floats, Indices, Scope
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.claims.device_selectors import NO_CEL, can_select
from volcano_py.scheduler.model.claims.group_claims import reserved_for_group
from volcano_py.scheduler.model.claims.resource_claims import ClaimDemand
from volcano_py.scheduler.model.jobs.pre_bind import PreBindSteps
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.noderules.devices.claim_book import ClaimBook
from volcano_py.scheduler.rules.devices.alternatives import has_alternatives, rank_of
from volcano_py.scheduler.rules.devices.device_steps import device_steps
from volcano_py.scheduler.rules.kept_codes import KeptCodes
from volcano_py.scheduler.rules.normalizing import share_of_highest


def book_of(session: Session) -> ClaimBook:
    """The ClaimBook of the session."""
    return session.shared(ClaimBook, lambda: ClaimBook(session))


class DynamicResourcesRule:
    """The results for a class of pods are kept, and computed again for the nodes whose devices were allocated or
    released."""

    name = "DynamicResources"
    scope: Literal[Scope.DOMAIN] = DOMAIN
    limits_pods = True

    def __init__(self, session: Session) -> None:
        self._session = session
        self._kept = KeptCodes(len(session.table))
        # With the claims of victims counted as free, an eviction can help.
        code = FitCode.UNSCHEDULABLE if session.deviations.pipelined_claims else FitCode.UNRESOLVABLE
        self.reasons = [
            Reason("cannot allocate all claims", code),
            Reason("resourceclaim not available on the node", FitCode.UNRESOLVABLE),
            Reason("a selector of a claim or of its device class fails", FitCode.ERROR),
            Reason("running Score plugins failed", FitCode.ERROR),
        ]

    def applies(self, task: Task) -> bool:
        return task.claims.devices is not None

    def filter(self, task: Task) -> Codes:
        demand = task.claims.devices
        assert demand is not None
        book = book_of(self._session)
        codes = self._kept.of(task.spec_class.id, book.log, partial(book.code, demand))
        if not self._session.deviations.scored_claims and self._cannot_be_scored(demand):
            return self._only_one(task, codes)
        return codes

    def _cannot_be_scored(self, demand: ClaimDemand) -> bool:
        """Whether a pod has allocated and new claims: Volcano's score of DynamicResources fails for such a pod."""
        book = book_of(self._session)
        return len({book.allocation(claim) is None for claim in demand.claims}) > 1

    def _only_one(self, task: Task, codes: Codes) -> Codes:
        """Without scores, no node can be chosen among several."""
        view = self._session.placement.view(task)
        ok = view.ok & (codes == 0)
        group = ok & view.idle if (ok & view.idle).any() else ok & view.future
        if group.sum() < 2:
            return codes
        rejected = codes.copy()
        rejected[group & (codes == 0)] = 4
        return rejected


class DynamicResourcesScore:
    """Prefers nodes on which earlier alternatives of `firstAvailable` are available."""

    name = "DynamicResourcesScore"
    scope: Literal[Scope.DOMAIN] = DOMAIN
    batch = True

    def __init__(self, session: Session) -> None:
        self._session = session

    def applies(self, task: Task) -> bool:
        return task.claims.devices is not None and has_alternatives(task.claims.devices)

    def constant(self, task: Task) -> float | None:
        return None

    def score(self, task: Task, candidates: Indices) -> Floats:
        demand = task.claims.devices
        assert demand is not None
        book = book_of(self._session)
        raw = np.array([rank_of(book.decide(demand, int(node))) for node in candidates], dtype=np.float64)
        return share_of_highest(raw, reverse=False)


def claim_problem(session: Session, task: Task) -> str | None:
    """Why all nodes reject a pod with claims."""
    demand = task.claims.devices
    assert demand is not None
    book = book_of(session)
    if not can_select() and book.selects(demand):
        return NO_CEL
    if not demand.problem and not session.deviations.shared_claims:
        for claim in demand.claims:
            if claim.key in book.pending:
                return f"resource claim {claim.key} is in the process of being allocated"
    return demand.problem or None


def follow_claims(session: Session) -> None:
    """Allocate and release the claims of the tasks that the session places and evicts."""
    book = book_of(session)
    session.add_event_handler(
        lambda task, node: book.place(task, node) if task.claims.devices is not None else None,
        lambda task, node: book.displace(task, node) if task.claims.devices is not None else None,
        concerns=lambda task: task.claims.devices is not None,
    )


def claim_steps(session: Session, task: Task, timeout: float) -> PreBindSteps | None:
    """The writes that must succeed before a task with claims is bound. `timeout`: see `device_steps`."""
    demand = task.claims.devices
    if demand is None:
        return None
    allocations = book_of(session).decisions.get(task.slot, {})
    steps = device_steps(session.cluster, task, demand, allocations, timeout)
    named = task.pod.spec.scheduling_group
    if named is not None and session.deviations.group_claims:
        group = session.cluster.native_groups.pod_group(f"{task.namespace}/{named.pod_group_name}")
        if group is not None:
            steps = [reserved_for_group(step, group, task.pod) for step in steps]
    return PreBindSteps(steps, {})
