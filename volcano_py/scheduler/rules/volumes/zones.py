"""Zones of volumes: a bound volume can be used on nodes of its zones. kube-scheduler: VolumeZone."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from volcano_py.scheduler.model.claims.volume_demand import ZONE_LABELS
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.rules.arrays import Bools

_STABLE = dict(zip(ZONE_LABELS[:2], ZONE_LABELS[2:], strict=True))
"""The label that replaces a deprecated one."""


def outside_zones(cluster: Cluster, zones: Sequence[tuple[str, Collection[str]]]) -> Bools:
    """The nodes outside the zones of bound volumes (a label with its values each); nodes without any zone label accept
    all volumes."""
    found = np.zeros(len(cluster.nodes), dtype=np.bool_)
    for i, node in enumerate(cluster.nodes.objects):
        labels = node.metadata.labels or {}
        if any(label in labels for label in ZONE_LABELS):
            found[i] = not all(_zone(labels, label) in values for label, values in zones)
    return found


def _zone(labels: Mapping[str, str], label: str) -> str | None:
    return labels.get(label, labels.get(_STABLE.get(label, "")))
