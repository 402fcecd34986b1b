"""Volumes: rejects nodes that cannot use a pod's volumes. kube-scheduler: VolumeBinding.

The filter has two parts. What depends on the objects alone is computed once for each class of pods. Where claims
compete for existing volumes, each pod is evaluated by itself.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from volcano_py.api.storage import PersistentVolume
from volcano_py.scheduler.framework.search.fit_errors import FitCode, Reason
from volcano_py.scheduler.framework.search.node_rules import DOMAIN, STATIC, Bools, Codes, Scope
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.claims.csi_migration import csi_affinity, csi_source
from volcano_py.scheduler.model.claims.volume_demand import VolumeDemand
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.pre_bind import AwaitVolume, BindVolume, PreBindStep, PreBindSteps, SelectNode
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.noderules.volumes.volume_book import EVERYWHERE, VolumeBook, VolumeDecision, VolumeRejection
from volcano_py.scheduler.rules.node_masks import node_mask

OUT_OF_REACH, MISSING = 1, 4
"""Reasons about bound claims, in addition to those of `VolumeRejection`."""
REASONS = [
    Reason("node(s) didn't match PersistentVolume's node affinity", FitCode.UNRESOLVABLE),
    Reason("node(s) didn't find available persistent volumes to bind", FitCode.UNRESOLVABLE),
    Reason("node(s) did not have enough free storage", FitCode.UNRESOLVABLE),
    Reason("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)", FitCode.UNRESOLVABLE),
    Reason("storage class of a claim not found", FitCode.ERROR),
]
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
        self._known: dict[int, tuple[Codes, int]] = {}
        self._bound: dict[int, Codes] = {}

    def applies(self, task: Task) -> bool:
        demand = task.claims.volumes
        return demand is not None and demand.matched

    def filter(self, task: Task) -> Codes:
        demand = task.claims.volumes
        assert demand is not None
        book = book_of(self._session)
        codes, position = self._known.get(task.spec_class.id, (None, 0))
        changed = set(book.log[position:])
        if codes is None or EVERYWHERE in changed:
            codes = np.zeros(len(self._session.table), dtype=np.int8)
            changed = set(range(len(codes)))
        for node in changed:
            found = book.decide(demand.waiting, demand.provisions, node)
            codes[node] = 0 if isinstance(found, VolumeDecision) else found
        self._known[task.spec_class.id] = (codes, len(book.log))
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


def bound_codes(cluster: Cluster, demand: VolumeDemand) -> Codes:
    """The nodes that cannot reach the volumes of a pod's bound claims; numbers as in REASONS."""
    codes = np.zeros(len(cluster.nodes), dtype=np.int8)
    if demand.missing:
        codes[:] = MISSING
    for volume in demand.bound:
        reached = _reached(cluster, volume)
        if reached is not None:
            codes[~reached] = OUT_OF_REACH
    return codes


def _reached(cluster: Cluster, volume: PersistentVolume) -> Bools | None:
    """The nodes that can use a volume; None: all."""
    own = volume.spec.node_affinity.required if volume.spec.node_affinity is not None else None
    reached = node_mask(cluster, own) if own is not None else None
    if csi_source(volume.spec) is None:
        return reached
    migrated = csi_affinity(volume)
    if migrated is None:
        return reached
    csi_node = cluster.claims.storage.csi_node
    has_csi = np.array([csi_node(name) is not None for name in cluster.nodes.names], dtype=bool)
    return np.where(has_csi, node_mask(cluster, migrated), True if reached is None else reached)


def provision_codes(book: VolumeBook, demand: VolumeDemand) -> Codes:
    """The nodes for which no volume can be provisioned for a waiting claim, if no existing volume can match."""
    names = book.node_names
    codes = np.zeros(len(names), dtype=np.int8)
    for claim in demand.waiting:
        if claim.selected:
            elsewhere = np.array([name != claim.selected for name in names], dtype=bool)
            _reject(codes, elsewhere, VolumeRejection.NO_VOLUME)
    for provision in demand.provisions:
        if provision.error:
            _reject(codes, np.ones(len(codes), dtype=bool), VolumeRejection.NO_CLASS)
        elif not provision.possible:
            _reject(codes, np.ones(len(codes), dtype=bool), VolumeRejection.NO_VOLUME)
        else:
            _reject(codes, ~book.topology(provision), VolumeRejection.NO_VOLUME)
            _reject(codes, ~book.capacity(provision), VolumeRejection.NO_SPACE)
    return codes


def _reject(codes: Codes, nodes: Bools, code: int) -> None:
    codes[nodes & (codes == 0)] = code


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


def binding_steps(
    decision: VolumeDecision, namespace: str, node: str, timeout: float, *, exact: bool = False
) -> list[PreBindStep]:
    """The writes for waiting claims before their pod is bound. `timeout`: seconds until the claims must be bound.
    `exact`: a step fails if its object has changed since the decision."""
    steps: list[PreBindStep] = []
    waits: list[PreBindStep] = []
    for claim, volume in decision.bindings:
        name, version = claim.key.partition("/")[2], volume.metadata.resource_version if exact else ""
        steps.append(BindVolume(volume.metadata.name, namespace, name, claim.uid, version))
        waits.append(AwaitVolume(namespace, name, claim.uid, "", timeout))
    for claim in decision.provisions:
        name, version = claim.key.partition("/")[2], claim.resource_version if exact else ""
        steps.append(SelectNode(namespace, name, claim.uid, node, version))
        waits.append(AwaitVolume(namespace, name, claim.uid, node, timeout))
    return steps + waits
