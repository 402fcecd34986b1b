"""Zones of volumes, for sessions: rejects nodes outside those of a pod's bound volumes. kube-scheduler: VolumeZone."""

from __future__ import annotations

from typing import Literal

import numpy as np

from volcano_py.scheduler.framework.search.fit_errors import FitCode, Reason
from volcano_py.scheduler.framework.search.node_rules import STATIC, Codes, Scope
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.rules.volumes.zones import outside_zones


class VolumeZoneRule:
    """Rejects nodes outside the zones; nodes without any zone label accept all volumes."""

    name = "VolumeZone"
    scope: Literal[Scope.STATIC] = STATIC
    reasons = [Reason("node(s) had no available volume zone", FitCode.UNRESOLVABLE)]

    def __init__(self, session: Session) -> None:
        self._session = session

    def applies(self, task: Task) -> bool:
        return task.claims.volumes is not None and bool(task.claims.volumes.zones)

    def filter(self, task: Task) -> Codes:
        demand = task.claims.volumes
        assert demand is not None
        return outside_zones(self._session.cluster, demand.zones).view(np.int8)
