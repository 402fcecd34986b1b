"""Volumes that are bound, or can be bound or provisioned, for each node. kube-scheduler: VolumeBinding.

What depends on the objects alone is computed here for a class of pods. Where claims compete for existing volumes, the
`VolumeBook` decides for each pod.
"""

from __future__ import annotations

import numpy as np

from volcano_py.api.storage import PersistentVolume
from volcano_py.scheduler.model.claims.csi_migration import csi_affinity, csi_source
from volcano_py.scheduler.model.claims.volume_demand import VolumeDemand
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.rules.arrays import Bools, Codes
from volcano_py.scheduler.rules.node_masks import node_mask
from volcano_py.scheduler.rules.volumes.volume_book import VolumeBook, VolumeRejection

OUT_OF_REACH, MISSING = 1, 4
"""Codes for bound claims, in addition to those of `VolumeRejection`."""
TEXTS = (
    "node(s) didn't match PersistentVolume's node affinity",
    "node(s) didn't find available persistent volumes to bind",
    "node(s) did not have enough free storage",
    "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
    "storage class of a claim not found",
)
"""What the codes mean, from 1 on; both front ends state the same."""


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
