"""PodClaims: the requirements of the volumes and devices that pods claim, kept current. Volcano: NewTaskInfo with its
resync.

A pod's class contains the requirements of its claims (`demand`). When an object that these depend on changes, `settle`
updates the classes of the affected pods.
"""

from __future__ import annotations

from volcano_py.api import core
from volcano_py.scheduler.model.claims import resource_claims, storage
from volcano_py.scheduler.model.claims.demand import NONE, PodClaimDemand
from volcano_py.scheduler.model.claims.device_selectors import DeviceSelectors
from volcano_py.scheduler.model.claims.extended_amounts import ExtendedAmounts
from volcano_py.scheduler.model.claims.resource_claims import ResourceClaims
from volcano_py.scheduler.model.claims.storage import IGNORED_PROVISIONERS, Storage
from volcano_py.scheduler.model.claims.volume_demand import VolumeCounting, volume_demand
from volcano_py.scheduler.model.jobs import status
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.model_state import ModelState
from volcano_py.scheduler.model.plan import Bind

KINDS = storage.KINDS | resource_claims.KINDS


class PodClaims:
    """`ignored_provisioners`: additional provisioners whose volumes do not count against a limit."""

    def __init__(self, cluster: ModelState, ignored_provisioners: frozenset[str] = frozenset()) -> None:
        self._cluster = cluster
        self.storage = Storage(cluster.others)
        self.resource_claims = ResourceClaims(cluster.others)
        extended = self.resource_claims.extended
        self.amounts = ExtendedAmounts(
            cluster.others,
            cluster.nodes,
            self.resource_claims.pools,
            extended,
            cluster.features,
            cluster.keep(DeviceSelectors),
        )
        """What devices provide of extended resources."""
        self._can_extend = {"DynamicResourceAllocation", "DRAExtendedResource"} <= cluster.features
        self._extended_of = 0
        """The generation of the extended resources for which the demands of all pods were determined."""
        extended.switch(self._can_extend)
        self._ignored = IGNORED_PROVISIONERS | ignored_provisioners
        self._counting = VolumeCounting.NONE
        """Which volumes are resources of their pods."""

    def demand(self, pod: core.Pod) -> PodClaimDemand:
        """The current requirements of a pod's claims. Raises ValueError if a claim is invalid for the pod."""
        if not pod.spec.volumes and not pod.spec.resource_claims and not self.resource_claims.extended.of_pod(pod):
            return NONE
        volumes = volume_demand(pod, self.storage, self._ignored, self._counting)
        devices = self.resource_claims.demand(pod)
        return PodClaimDemand(volumes, devices) if volumes is not None or devices is not None else NONE

    def count_volumes(self, on: bool, all_drivers: bool) -> None:
        """Count volumes as resources of their pods, as Volcano does, also those of drivers that no node has: such pods
        fit nowhere."""
        counting = (
            VolumeCounting.NONE if not on else VolumeCounting.ALL if all_drivers else VolumeCounting.KNOWN_DRIVERS
        )
        if counting != self._counting:
            self._counting = counting
            self.storage.all_touched = True

    def serve_extended_resources(self, on: bool) -> None:
        """Serve extended resources from devices, if the feature gate is enabled."""
        self.resource_claims.extended.switch(on and self._can_extend)

    def changed(self, kind: str, key: str) -> None:
        """An object that claims depend on was added, changed or removed."""
        (self.storage if kind in storage.KINDS else self.resource_claims).changed(kind, key)

    def use(self, task: Task, used: bool) -> None:
        """Record that a task uses its claims, or no longer does."""
        if task.status in (status.SUCCEEDED, status.FAILED):
            if used and task.pod.spec.resource_claims:
                self.resource_claims.pod_ended(task.pod)
            return
        if task.pod.spec.volumes:
            self.storage.use(task.pod, used)
        if task.pod.spec.resource_claims:
            self.resource_claims.use(task.pod, used)

    def assume(self, bind: Bind) -> None:
        """Count the steps of a bind as done."""
        for step in bind.steps:
            self.storage.assume(bind.uid, step)
            self.resource_claims.assume(bind.uid, step)

    def forget(self, bind: Bind) -> None:
        """Undo `assume`."""
        for step in bind.steps:
            self.storage.forget(bind.uid, step)
            self.resource_claims.forget(bind.uid, step)

    def removed(self, task: Task) -> None:
        """A pod was deleted."""
        self.resource_claims.pod_removed(task.pod)

    def settle(self) -> None:
        """Update the classes of the tasks whose claims have changed, and the amounts that devices provide."""
        keys = self._extended_changed()
        for of in (self.storage, self.resource_claims):
            keys |= of.touched
            if of.all_touched:
                keys.update(*of.users.values())
            of.touched, of.all_touched = set(), False
        for key in sorted(keys):
            task = self._cluster.tasks.get(key)
            if task is not None:
                self.classify(task)
        for name in self.amounts.update():
            self._cluster.allocatable_changed(name)

    def classify(self, task: Task) -> None:
        """Determine the class of a task again, after something that it depends on besides the pod has changed."""
        cluster = self._cluster
        try:
            claims = self.demand(task.pod)
        except ValueError:
            # The pod keeps its former class; its next event reports the error.
            return
        spec_class = cluster.classes.of(task.pod, claims)
        if spec_class is task.spec_class:
            task.claims = claims
            return
        job = cluster.jobs.get(task.job)
        if job is not None:
            job.remove(task)
        if task.takes_capacity:
            cluster.node_changes.add(task.node)
            cluster.placed.count(task, -1)
        task.set_class(spec_class, claims)
        if task.takes_capacity:
            cluster.placed.count(task, +1)
        if job is not None:
            job.add(task)
            cluster.job_changes.add(task.job)

    def _extended_changed(self) -> set[str]:
        """The pods that request a resource which a DeviceClass has begun or ceased to provide."""
        extended = self.resource_claims.extended
        if self._extended_of == extended.generation:
            return set()
        self._extended_of = extended.generation
        if not extended.classes and not extended.wanted:
            return set()  # no pod requests such a resource, and none has before
        for job in self._cluster.jobs.values():
            if job.min_resources is not None:
                extended.want(job.min_resources.scalars or ())
        return {key for key, task in self._cluster.tasks.items() if _has_extended(task) or extended.of_pod(task.pod)}


def _has_extended(task: Task) -> bool:
    devices = task.claims.devices
    return devices is not None and any(claim.extended is not None for claim in devices.claims)
