"""Scores by the part of a node's storage capacity that the claims of a pod need. kube-scheduler: the score of
VolumeBinding, with the feature gate StorageCapacityScoring.

Each StorageClass counts once. If volumes exist for some of the waiting claims, these volumes count: the requested part
of their size. Otherwise the first CSIStorageCapacity, by its name, that suffices for a claim near the node does.
"""

from __future__ import annotations

from collections.abc import Sequence

from volcano_py.api import quantity, storage
from volcano_py.api.selector import matches
from volcano_py.scheduler.model.claims.storage import Storage
from volcano_py.scheduler.model.claims.volume_demand import VolumeDemand, WaitingClaim, volume_limit
from volcano_py.scheduler.rules.score_line import LinePoint, on_line
from volcano_py.scheduler.rules.volumes.volume_book import VolumeBook, VolumeDecision

GATE = "StorageCapacityScoring"
EMPTIEST_FIRST = (LinePoint(0, 10), LinePoint(100, 0))
"""The default shape."""


def score_of_node(shape: Sequence[LinePoint], book: VolumeBook, of: Storage, demand: VolumeDemand, node: int) -> int:
    """0 to 100; 0 if the pod has no waiting claims, or if the capacity for them is not known."""
    found = book.decide(demand.waiting, demand.provisions, node)
    if not isinstance(found, VolumeDecision):
        return 0
    uses = _of_volumes(found) if found.bindings else _of_capacities(found, of, book.labels(node))
    scores = [on_line(shape, _percent(requested, capacity)) for requested, capacity in uses.values()]
    return (2 * sum(scores) + len(scores)) // (2 * len(scores)) if scores else 0


def _percent(requested: int, capacity: int) -> int:
    return 100 if requested > capacity or not capacity else requested * 100 // capacity


def _of_volumes(found: VolumeDecision) -> dict[str, tuple[int, int]]:
    """(requested, capacity) of the volumes of each class."""
    uses: dict[str, tuple[int, int]] = {}
    for claim, volume in found.bindings:
        requested, capacity = uses.get(claim.storage_class, (0, 0))
        size = quantity.value((volume.spec.capacity or {}).get("storage", 0))
        uses[claim.storage_class] = (requested + claim.size, capacity + size)
    return uses


def _of_capacities(found: VolumeDecision, of: Storage, labels: dict[str, str]) -> dict[str, tuple[int, int]]:
    """(requested, capacity) of the volumes that are provisioned of each class: their claims share one capacity."""
    uses: dict[str, tuple[int, int]] = {}
    for claim in found.provisions:
        capacity = _near(claim, of, labels)
        if capacity is not None:
            requested, _ = uses.get(claim.storage_class, (0, 0))
            uses[claim.storage_class] = (requested + claim.size, quantity.value(capacity.capacity or 0))
    return uses


def _near(claim: WaitingClaim, of: Storage, labels: dict[str, str]) -> storage.CSIStorageCapacity | None:
    storage_class = of.storage_class(claim.storage_class)
    if storage_class is None or not of.checks_capacity(storage_class.provisioner):
        return None
    for capacity in sorted(of.capacities(claim.storage_class), key=lambda c: c.metadata.key):
        near = capacity.node_topology
        if near is not None and volume_limit(capacity) >= claim.size and matches(near, labels):
            return capacity
    return None
