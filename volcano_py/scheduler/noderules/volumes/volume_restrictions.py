"""Volumes that pods cannot share, for sessions: claims for one pod, and disks of one node. kube-scheduler:
VolumeRestrictions.
"""

from __future__ import annotations

from collections import Counter
from typing import Literal

import numpy as np

from volcano_py.api.core import Volume
from volcano_py.scheduler.framework.search.fit_errors import FitCode, Reason
from volcano_py.scheduler.framework.search.node_rules import DOMAIN, Codes, Scope
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.rules.volumes.disks import shares_disk

ONE_POD, DISK = 1, 2


class VolumeRestrictionsRule:
    """Rejects all nodes while another pod that is on a node uses a claim for one pod, and the nodes whose pods use a
    disk of the pod."""

    name = "VolumeRestrictions"
    scope: Literal[Scope.DOMAIN] = DOMAIN
    limits_pods = True
    reasons = [
        Reason(
            "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode",
            FitCode.UNSCHEDULABLE,
        ),
        Reason("node(s) had no available disk", FitCode.UNSCHEDULABLE),
    ]

    def __init__(self, session: Session) -> None:
        self._session = session
        self._users: Counter[str] | None = None
        self._with_disks: dict[int, dict[int, Task]] = {}
        """The pods with disks on each node, by slot."""

    def applies(self, task: Task) -> bool:
        demand = task.claims.volumes
        return demand is not None and bool(demand.exclusive or demand.disks)

    def filter(self, task: Task) -> Codes:
        if self._users is None:
            self._users = Counter()
            self._session.kube.on_pods(self._move)
        demand = task.claims.volumes
        assert demand is not None
        in_use = any(self._users[claim] > 0 for claim in demand.exclusive)
        codes = np.full(len(self._session.table), ONE_POD if in_use else 0, dtype=np.int8)
        for node, others in self._with_disks.items() if demand.disks else ():
            if any(shares_disk(demand.disks, _disks(other)) for other in others.values()):
                codes[node] = DISK
        return codes

    def _move(self, task: Task, node: int, sign: int) -> None:
        if task.claims.volumes is None:
            return
        assert self._users is not None
        for claim in task.claims.volumes.exclusive:
            self._users[claim] += sign
        if task.claims.volumes.disks:
            here = self._with_disks.setdefault(node, {})
            if sign > 0:
                here[task.slot] = task
            else:
                here.pop(task.slot, None)


def _disks(task: Task) -> tuple[Volume, ...]:
    return task.claims.volumes.disks if task.claims.volumes is not None else ()
