"""VolumeBook: the volumes and nodes that waiting claims get. kube-scheduler: FindPodVolumes and AssumePodVolumes of
VolumeBinding.

It starts with the objects and the binds in flight (`model.claims.storage`). A session updates its book with its
placements. Pods of profiles reserve in the model itself, so that their book never changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from volcano_py.api import affinity, quantity, storage
from volcano_py.api.selector import matches
from volcano_py.scheduler.model.claims.volume_demand import Provision, WaitingClaim
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.rules.arrays import Bools
from volcano_py.scheduler.rules.kept_codes import EVERYWHERE
from volcano_py.scheduler.rules.node_masks import node_mask


class VolumeRejection(IntEnum):
    """Why a node cannot serve waiting claims; the numbers are those of `VolumeBinding.reasons`."""

    NO_VOLUME = 2
    NO_SPACE = 3
    NO_CLASS = 5


class VolumeDecision(NamedTuple):
    """The volumes and provisions that the waiting claims of a pod get on a node."""

    bindings: list[tuple[WaitingClaim, storage.PersistentVolume]]
    provisions: list[WaitingClaim]


class VolumeBook:
    """See the module. `log`: as in `kept_codes`."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._nodes = cluster.nodes
        self._storage = cluster.claims.storage
        self._taken: dict[str, list[str]] = {}
        self._selected: dict[str, list[str]] = {}
        self._at: dict[str, dict[int, list[storage.PersistentVolume]]] = {}
        self.decisions: dict[int, VolumeDecision] = {}
        """By task slot."""
        self.log: list[int] = []

    # ---- deciding -------------------------------------------------------------------------------------------

    @property
    def node_names(self) -> list[str]:
        """The names of the nodes, by column."""
        return self._nodes.names

    def decide(
        self, waiting: Sequence[WaitingClaim], provisions: Sequence[Provision], node: int
    ) -> VolumeDecision | VolumeRejection:
        """The volumes of the claims on a node. `waiting` is sorted by size: the smallest claim is served first."""
        name = self._nodes.names[node]
        bindings: list[tuple[WaitingClaim, storage.PersistentVolume]] = []
        to_make: list[tuple[WaitingClaim, Provision]] = []
        for claim in waiting:
            selected = self._selected_node(claim)
            if selected and selected != name:
                return VolumeRejection.NO_VOLUME
        chosen: set[str] = set()
        for claim, provision in zip(waiting, provisions, strict=True):
            volume = None if self._selected_node(claim) else self._match(claim, node, chosen)
            if volume is None:
                to_make.append((claim, provision))
            else:
                chosen.add(volume.metadata.name)
                bindings.append((claim, volume))
        for _, provision in to_make:
            if provision.error:
                return VolumeRejection.NO_CLASS
            if not provision.possible or not self._in_topology(provision, node):
                return VolumeRejection.NO_VOLUME
            if not self._has_capacity(provision, node):
                return VolumeRejection.NO_SPACE
        return VolumeDecision(bindings, [claim for claim, _ in to_make])

    def code(self, waiting: Sequence[WaitingClaim], provisions: Sequence[Provision], node: int) -> int:
        """0 if the node can serve the claims, else the VolumeRejection."""
        found = self.decide(waiting, provisions, node)
        return 0 if isinstance(found, VolumeDecision) else int(found)

    def topology(self, provision: Provision) -> Bools:
        """The nodes in a class's allowedTopologies."""
        return np.array([self._in_topology(provision, i) for i in range(len(self._nodes))], dtype=bool)

    def capacity(self, provision: Provision) -> Bools:
        """The nodes for which a volume of the claim's size can be provisioned."""
        return np.array([self._has_capacity(provision, i) for i in range(len(self._nodes))], dtype=bool)

    def labels(self, node: int) -> dict[str, str]:
        return self._nodes.objects[node].metadata.labels or {}

    def _in_topology(self, provision: Provision, node: int) -> bool:
        labels = self.labels(node)
        return not provision.topologies or any(_in_topology(term, labels) for term in provision.topologies)

    def _has_capacity(self, provision: Provision, node: int) -> bool:
        labels = self.labels(node)
        return provision.nodes is None or any(matches(selector, labels) for selector in provision.nodes)

    def _selected_node(self, claim: WaitingClaim) -> str:
        here = self._selected.get(claim.key)
        return here[0] if here else claim.selected

    def _match(self, claim: WaitingClaim, node: int, chosen: set[str]) -> storage.PersistentVolume | None:
        """The volume that is reserved for the claim, or the smallest free one that serves it."""
        for volume in self._reserved(claim):
            if volume.metadata.name not in chosen and _serves(volume, claim):
                return volume if self._reaches(volume, node) else None
        for volume in self._volumes_at(claim.storage_class).get(node, ()):
            name = volume.metadata.name
            if (
                name not in chosen
                and name not in self._taken
                and name not in self._storage.volume_taken
                and _serves(volume, claim)
                and volume.status.phase == "Available"
                and (claim.selector is None or matches(claim.selector, volume.metadata.labels))
                and set(claim.access_modes) <= set(volume.spec.access_modes or ())
            ):
                return volume
        return None

    def _reserved(self, claim: WaitingClaim) -> list[storage.PersistentVolume]:
        of = self._storage
        found = [
            v
            for v in of.reserved.get(claim.key, {}).values()
            if v.spec.claim_ref is not None
            and v.spec.claim_ref.uid in ("", claim.uid)
            and v.spec.storage_class_name == claim.storage_class
        ]
        if claim.named:
            mine = [name for name, owners in self._taken.items() if claim.key in owners]
            mine += [
                name
                for name, steps in of.volume_taken.items()
                if any(f"{s.namespace}/{s.claim}" == claim.key for s in steps.values())
            ]
            found += [v for name in mine if (v := of.volume(name)) is not None]
        return found

    def _reaches(self, volume: storage.PersistentVolume, node: int) -> bool:
        selector = _required(volume)
        return selector is None or bool(node_mask(self._cluster, selector)[node])

    def _volumes_at(self, storage_class: str) -> dict[int, list[storage.PersistentVolume]]:
        """The free volumes of a class that each node reaches, the smallest first."""
        found = self._at.get(storage_class)
        if found is None:
            found = self._at[storage_class] = {}
            free = self._storage.free.get(storage_class, {}).values()
            for volume in sorted(free, key=lambda v: (_size(v), v.metadata.name)):
                for node in self._nodes_of(volume):
                    found.setdefault(node, []).append(volume)
        return found

    def _nodes_of(self, volume: storage.PersistentVolume) -> list[int]:
        selector = _required(volume)
        if selector is None:
            return list(range(len(self._nodes)))
        return np.flatnonzero(node_mask(self._cluster, selector)).tolist()

    # ---- following the session --------------------------------------------------------------------------------

    def place(self, task: Task, node: int) -> None:
        """Reserve the volumes for a task that gets a node, from what the node offers now. If it offers none (the filter
        is not enabled), nothing is reserved."""
        demand = task.claims.volumes
        if demand is None or not demand.waiting:
            return
        decision = self.decide(demand.waiting, demand.provisions, node)
        if isinstance(decision, VolumeDecision):
            self.decisions[task.slot] = decision
            self._count(decision, node, +1)

    def displace(self, task: Task, node: int) -> None:
        """Undo `place`."""
        decision = self.decisions.pop(task.slot, None)
        if decision is not None:
            self._count(decision, node, -1)

    def _count(self, decision: VolumeDecision, node: int, sign: int) -> None:
        for claim, volume in decision.bindings:
            _move(self._taken, volume.metadata.name, claim.key, sign)
            near = self._nodes_of(volume)
            self.log += near if len(near) * 4 < len(self._nodes) and not claim.named else [EVERYWHERE]
        for claim in decision.provisions:
            _move(self._selected, claim.key, self._nodes.names[node], sign)
            if claim.named:
                self.log.append(EVERYWHERE)


def _move(table: dict[str, list[str]], key: str, value: str, sign: int) -> None:
    entries = table.setdefault(key, [])
    if sign > 0:
        entries.append(value)
    else:
        entries.remove(value)
        if not entries:
            del table[key]


def _required(volume: storage.PersistentVolume) -> affinity.NodeSelector | None:
    return volume.spec.node_affinity.required if volume.spec.node_affinity is not None else None


def _size(volume: storage.PersistentVolume) -> int:
    return quantity.value((volume.spec.capacity or {}).get("storage", 0))


def _serves(volume: storage.PersistentVolume, claim: WaitingClaim) -> bool:
    """Whether a volume is large enough, has the claim's mode, and is not being deleted."""
    return (
        _size(volume) >= claim.size
        and (volume.spec.volume_mode or "Filesystem") == claim.volume_mode
        and not volume.metadata.deletion_timestamp
    )


def _in_topology(term: storage.TopologySelectorTerm, labels: dict[str, str]) -> bool:
    expressions = term.match_label_expressions or ()
    return bool(expressions) and all(labels.get(e.key) in (e.values or ()) for e in expressions)
