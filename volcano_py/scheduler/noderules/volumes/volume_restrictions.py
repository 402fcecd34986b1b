"""ReadWriteOncePod: a claim that one pod may use at a time is in use. kube-scheduler: VolumeRestrictions."""

from __future__ import annotations

from collections import Counter
from typing import Literal

import numpy as np

from volcano_py.scheduler.framework.search.fit_errors import FitCode, Reason
from volcano_py.scheduler.framework.search.node_rules import DOMAIN, Codes, Scope
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.task import Task


class VolumeRestrictionsRule:
    """Rejects all nodes while another pod that is on a node uses the claim."""

    name = "VolumeRestrictions"
    scope: Literal[Scope.DOMAIN] = DOMAIN
    reasons = [
        Reason(
            "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode",
            FitCode.UNSCHEDULABLE,
        )
    ]

    def __init__(self, session: Session) -> None:
        self._session = session
        self._users: Counter[str] | None = None

    def applies(self, task: Task) -> bool:
        return task.claims.volumes is not None and bool(task.claims.volumes.exclusive)

    def filter(self, task: Task) -> Codes:
        if self._users is None:
            self._users = Counter()
            self._session.kube.on_pods(self._move)
        assert task.claims.volumes is not None
        in_use = any(self._users[claim] > 0 for claim in task.claims.volumes.exclusive)
        return np.full(len(self._session.table), in_use, dtype=np.int8)

    def _move(self, task: Task, _: int, sign: int) -> None:
        if task.claims.volumes is not None:
            assert self._users is not None
            for claim in task.claims.volumes.exclusive:
                self._users[claim] += sign
