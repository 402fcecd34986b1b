"""Zones of volumes: rejects nodes outside the zones of a pod's bound volumes. kube-scheduler: VolumeZone."""

from __future__ import annotations

from typing import Literal

import numpy as np

from volcano_py.scheduler.framework.fit_errors import Code, Reason
from volcano_py.scheduler.framework.node_rules import STATIC, Codes, Scope
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.task import Task
from volcano_py.scheduler.model.volume_demand import ZONE_LABELS, VolumeDemand

_STABLE = dict(zip(ZONE_LABELS[:2], ZONE_LABELS[2:], strict=True))
"""The label that replaces a deprecated one."""


class VolumeZone:
    """Rejects nodes outside the zones; nodes without any zone label accept all volumes."""

    name = "VolumeZone"
    scope: Literal[Scope.STATIC] = STATIC
    reasons = [Reason("node(s) had no available volume zone", Code.UNRESOLVABLE)]

    def __init__(self, session: Session) -> None:
        self._session = session

    def applies(self, task: Task) -> bool:
        return task.claims.volumes is not None and bool(task.claims.volumes.zones)

    def filter(self, task: Task) -> Codes:
        demand = task.claims.volumes
        assert demand is not None
        return zone_codes(self._session.cluster, demand)


def zone_codes(cluster: Cluster, demand: VolumeDemand) -> Codes:
    """1 for the nodes outside the zones of a pod's bound volumes."""
    codes = np.zeros(len(cluster.nodes), dtype=np.int8)
    for i, node in enumerate(cluster.nodes.objects):
        labels = node.metadata.labels or {}
        if any(label in labels for label in ZONE_LABELS):
            codes[i] = not all(_zone(labels, label) in values for label, values in demand.zones)
    return codes


def _zone(labels: dict[str, str], label: str) -> str | None:
    return labels.get(label, labels.get(_STABLE.get(label, "")))
