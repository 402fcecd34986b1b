"""Rules about the volumes of a pod: zones and numbers. kube-scheduler: VolumeZone, NodeVolumeLimits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Iterable, Mapping, Sequence

import numpy as np

from volcano_py.scheduler.model.claims.volume_demand import ZONE_LABELS
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.rules.arrays import Bools

Handle = tuple[str, str]
"""A volume: its driver and its name there."""
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


def exceeds(handles: Iterable[tuple[str, str, bool]], attached: Container[Handle], free: Mapping[str, float]) -> bool:
    """Whether the volumes exceed the limits of a node.

    `handles`: as in VolumeDemand. `attached`: the handles on the node. `free`: how many more of each driver it accepts.
    """
    new = Counter(driver for driver, handle, alone in set(handles) if alone or (driver, handle) not in attached)
    return any(driver in free and number > free[driver] for driver, number in new.items())
