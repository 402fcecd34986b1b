"""PodClaims: what the volumes and devices that pods claim mean, kept current. Volcano: NewTaskInfo with its resync.

A pod's class contains what its claims mean for nodes (`demand`). When an object that this depends on changes, `settle`
gives the pods concerned their new classes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from volcano_py.api import core
from volcano_py.scheduler.model import status, storage
from volcano_py.scheduler.model.demand import NONE, Demand
from volcano_py.scheduler.model.plan import Bind
from volcano_py.scheduler.model.storage import IGNORED_PROVISIONERS, Storage
from volcano_py.scheduler.model.volume_demand import volume_demand

if TYPE_CHECKING:
    from volcano_py.scheduler.model.cluster import Cluster
    from volcano_py.scheduler.model.task import Task

KINDS = storage.KINDS


class PodClaims:
    """`ignored_provisioners`: further provisioners whose volumes count against no limit."""

    def __init__(self, cluster: Cluster, ignored_provisioners: frozenset[str] = frozenset()) -> None:
        self._cluster = cluster
        self.storage = Storage(cluster.others)
        self._ignored = IGNORED_PROVISIONERS | ignored_provisioners
        self._only_known_drivers = True

    def demand(self, pod: core.Pod) -> Demand:
        """What the claims of a pod mean now. Raises ValueError if the pod cannot be used with them."""
        if not pod.spec.volumes:
            return NONE
        volumes = volume_demand(pod, self.storage, self._ignored, self._only_known_drivers)
        return Demand(volumes) if volumes is not None else NONE

    def count_all_drivers(self, all_drivers: bool) -> None:
        """Count volumes of drivers that no node has, too: their pods fit nowhere."""
        if all_drivers == self._only_known_drivers:
            self._only_known_drivers = not all_drivers
            self.storage.all_touched = True

    def changed(self, kind: str, key: str) -> None:
        """An object that claims depend on was added, changed or removed."""
        self.storage.changed(kind, key)

    def use(self, task: Task, used: bool) -> None:
        """A task begins to name its claims, or ceases to."""
        if task.pod.spec.volumes and task.status not in (status.SUCCEEDED, status.FAILED):
            self.storage.use(task.pod, used)

    def assume(self, bind: Bind) -> None:
        """Count the steps of a bind as done."""
        for step in bind.steps:
            self.storage.assume(bind.uid, step)

    def forget(self, bind: Bind) -> None:
        """The opposite of `assume`."""
        for step in bind.steps:
            self.storage.forget(bind.uid, step)

    def settle(self) -> None:
        """Give the tasks whose claims have changed their new classes."""
        of = self.storage
        if not of.touched and not of.all_touched:
            return
        keys = {key for users in of.users.values() for key in users} if of.all_touched else of.touched
        of.touched, of.all_touched = set(), False
        for key in sorted(keys):
            task = self._cluster.tasks.get(key)
            if task is not None:
                self._cluster.classify(task)
