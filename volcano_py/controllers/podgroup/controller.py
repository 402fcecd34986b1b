"""Runs the PodGroup reconciler: for pods, and for ReplicaSets and StatefulSets that are scaled."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Sequence

from msgspec import field

from volcano_py.api import kinds, names, plain_pods
from volcano_py.api.core import Pod, ReplicaSet, StatefulSet
from volcano_py.api.meta import ApiObject, ApiType, ObjectMeta, OwnerReference
from volcano_py.api.native_groups import native_group
from volcano_py.api.resource_types import ResourceType
from volcano_py.api.scheduling import PodGroup
from volcano_py.controllers.instructions import Delete
from volcano_py.controllers.mirror import Mirror
from volcano_py.controllers.podgroup import native
from volcano_py.controllers.podgroup.owners import (
    RAYCLUSTER,
    RAYJOB,
    UNKNOWN,
    Stated,
    family_of,
    rayjob_of,
    stated,
    with_deadline,
)
from volcano_py.controllers.podgroup.reconcile import (
    OWNER_KINDS,
    group_of,
    needs_podgroup,
    podgroup_name,
    reconcile,
    within,
)
from volcano_py.controllers.podgroup.served import GRACE, Served, reacted
from volcano_py.controllers.runner import Cluster
from volcano_py.kube.errors import Forbidden, NotFound
from volcano_py.kube.workqueue import WorkQueue

log = logging.getLogger(__name__)

Workload = ReplicaSet | StatefulSet
REVISION = "controller-revision-hash"
"""The label with the revision of a StatefulSet's pod."""
OWNER_FOLLOWS = 2.0
"""Seconds in which the owner of a pod is expected: pods and owners are watched separately."""
UNSERVED = "Unserved"
"""The key of the work that looks for pods without a reaction of their scheduler."""
OWNERS_KEPT = 4096
"""Number of owners whose annotations are cached; they rarely change, and a controller creates many pods."""


class _OwnerSpec(ApiType):
    """The fields that limit how many pods of an owner exist at a time, and how long they run."""

    replicas: int | None = None
    pod_management_policy: str = ""
    parallelism: int | None = None
    completions: int | None = None
    active_deadline_seconds: int | None = None
    """Of a Job."""


class _Owner(ApiObject):
    """The parts of an owner of any kind that its PodGroup depends on."""

    spec: _OwnerSpec = field(default_factory=_OwnerSpec)


class PodGroupController:
    name = "pg-controller"

    def __init__(
        self,
        cluster: Cluster,
        *,
        workers: int = 5,
        scheduler_names: Sequence[str] = ("volcano",),
        inherit_owner_annotations: bool = True,
        workloads: bool = True,
        of_single_pods: bool = True,
    ) -> None:
        """`workloads`: also watch ReplicaSets and StatefulSets (feature gate WorkLoadSupport). `of_single_pods`: create
        PodGroups also for pods that need none."""
        self.queue: WorkQueue[str] = WorkQueue(qps=100, burst=1000)
        self.workers = workers
        self._scheduler_names = scheduler_names
        self._inherit = inherit_owner_annotations
        self._client = cluster.client
        self._executor = cluster.executor
        self._owners: OrderedDict[str, dict[str, str]] = OrderedDict()
        self._pods: Mirror[Pod] = cluster.mirror(kinds.POD)
        self._podgroups: Mirror[PodGroup] = cluster.mirror(kinds.PODGROUP)
        self._creating: dict[str, asyncio.Event] = {}
        """PodGroups that a worker creates."""
        self._native: OrderedDict[tuple[str, str, str], None] = OrderedDict()
        """The PodGroups of scheduling.k8s.io that exist: namespace, name, and UID of what controls their pods."""
        self._early: OrderedDict[str, float] = OrderedDict()
        """Pods whose owner is unknown, by UID, and until when it may follow."""
        self._served = None if of_single_pods else Served()
        self._pods.on(add=self._pod_seen, update=self._pod_changed)
        if self._served is not None:
            self._pods.on(delete=self._served.forget)
        self._workloads: dict[str, Mirror[Workload]] = {}
        if workloads:
            for rt in (kinds.REPLICASET, kinds.STATEFULSET):
                mirror: Mirror[Workload] = cluster.mirror(rt)
                self._workloads[rt.kind] = mirror
                mirror.on(add=self._workload_seen, update=lambda old, new: self._workload_seen(new))

    def _pod_seen(self, pod: Pod) -> None:
        group = native_group(pod.metadata.labels, pod.metadata.annotations)
        of_pod = pod.spec.scheduling_group
        if group is not None and of_pod is not None and of_pod.pod_group_name == group.name:
            self.queue.add(f"Native/{pod.key}")
        if needs_podgroup(pod, self._scheduler_names):
            self.queue.add(f"Pod/{pod.key}")

    def _pod_changed(self, old: Pod, pod: Pod) -> None:
        if pod.spec.scheduler_name not in self._scheduler_names:
            return
        needs = needs_podgroup(pod, self._scheduler_names)
        # An API server that was restored from a backup may have the PodGroup, and the pod without its annotation.
        again = needs and not needs_podgroup(old, self._scheduler_names)
        if self._served is not None:
            if not needs:
                self._served.forget(pod)
            elif not self._served.changed(pod, time.monotonic()) and old.spec.scheduling_gates:
                again = True  # a gate was removed
        if again:
            self.queue.add(f"Pod/{pod.key}")

    def _workload_seen(self, workload: Workload) -> None:
        self._owners.pop(workload.metadata.uid, None)
        self.queue.add(f"{workload.kind}/{workload.key}")

    async def process(self, key: str) -> None:
        """Reconcile the PodGroup of one pod, ReplicaSet or StatefulSet."""
        kind, _, name = key.partition("/")
        if key == UNSERVED:
            self._look_after_unserved()
        elif kind == "Native":
            await self._keep_native(name)
        elif kind == "Pod":
            pod = self._pods.get(name)
            if pod is not None and needs_podgroup(pod, self._scheduler_names) and not self._does_without(pod):
                await self._keep(pod)
        else:
            workload = self._workloads[kind].get(name)
            if workload is not None:
                await self._follow(workload)
        self.queue.forget(key)

    def _does_without(self, pod: Pod) -> bool:
        """Whether a pod gets no PodGroup: it needs none, and its scheduler places it so."""
        if self._served is None or pod.spec.scheduler_name in self._served.without:
            return False
        if self._podgroups.get(f"{pod.metadata.namespace}/{podgroup_name(pod)}") is not None:
            return False  # of an earlier version
        of_owner = plain_pods.owner_annotations(
            pod, lambda kind, key: self._workloads[kind].get(key) if kind in self._workloads else None
        )
        if kind := plain_pods.watched_owner(pod):
            if not self._inherit:
                return False
            if kind in self._workloads and self._owner_may_follow(pod, of_owner is not None):
                return True
        if plain_pods.needs_group(pod, of_owner):
            return False
        if reacted(pod):
            return True
        gates = pod.spec.scheduling_gates or ()
        if all(gate.name == names.QUEUE_ALLOCATION_GATE for gate in gates):  # others: when they are removed
            self._served.waits(pod, time.monotonic())
            self.queue.add_after(UNSERVED, GRACE)
        return True

    def _owner_may_follow(self, pod: Pod, known: bool) -> bool:
        """Whether a pod was received shortly before its owner: look at it again in a while."""
        uid = pod.metadata.uid
        if known:
            self._early.pop(uid, None)
            return False
        if time.monotonic() >= self._early.setdefault(uid, time.monotonic() + OWNER_FOLLOWS):
            return False
        if len(self._early) > OWNERS_KEPT:
            self._early.popitem(last=False)
        self.queue.add_after(f"Pod/{pod.key}", OWNER_FOLLOWS)
        return True

    def _look_after_unserved(self) -> None:
        assert self._served is not None
        before = set(self._served.without)
        found, pause = self._served.due(time.monotonic())
        for name in sorted(self._served.without - before):
            log.warning(
                "scheduler %s places no pods without a PodGroup: its pods get PodGroups from now on; if it shall not "
                "take %.0f s to notice that, set --pod-groups-of-single-pods",
                name,
                GRACE,
            )
        for key in found:
            self.queue.add(f"Pod/{key}")
        if pause is not None:
            self.queue.add_after(UNSERVED, pause)

    async def _keep_native(self, key: str) -> None:
        """Create the native groups of a pod of a JobSet or LeaderWorkerSet, once."""
        pod = self._pods.get(key)
        group = native_group(pod.metadata.labels, pod.metadata.annotations) if pod is not None else None
        if pod is None or group is None:
            return
        namespace, controller = pod.metadata.namespace, pod.metadata.controller
        known = (namespace, group.name, controller.uid if controller is not None else "")
        if known in self._native:
            return
        kind = native.owner_kind(group)
        try:
            owner = await self._client.get(kind, group.owner, namespace)
            await self._executor.carry_out(list(native.groups_of(pod, group, owner)), pod)
            made = await self._client.get(kinds.NATIVE_PODGROUP_BETA, group.name, namespace)
        except (NotFound, Forbidden) as error:
            log.warning("native groups of %s %s/%s: %s", kind.kind, namespace, group.owner, error)
            return
        if not native.is_of(made, owner):  # that of a deleted owner with this name, which will be gone soon
            self.queue.add_after(f"Native/{key}", OWNER_FOLLOWS)
            return
        self._native[known] = None
        if len(self._native) > OWNERS_KEPT:
            self._native.popitem(last=False)

    async def _keep(self, pod: Pod, *, update: bool = False) -> None:
        """Create the PodGroup of a pod, or update it; of several workers with pods of one group, one creates it."""
        key = f"{pod.metadata.namespace}/{podgroup_name(pod)}"
        while key in self._creating and self._podgroups.get(key) is None:
            await self._creating[key].wait()
        podgroup = self._podgroups.get(key)
        if podgroup is not None:
            await self._write(pod, podgroup, update)
            return
        created = self._creating[key] = asyncio.Event()
        try:
            await self._write(pod, None, update)
        finally:
            del self._creating[key]
            created.set()

    async def _write(self, pod: Pod, podgroup: PodGroup | None, update: bool) -> None:
        annotations = await self._owner_annotations(pod) if podgroup is None or update else []
        family = family_of(pod)
        if family is None:
            await self._executor.carry_out(reconcile(pod, podgroup, annotations, update), pod)
            return
        of_owner = None
        if podgroup is None and family.kind is not None:
            of_owner = await self._read_owner(family.kind, family.name, pod.metadata.namespace)
            annotations += [of_owner.annotations] if self._inherit else []
        await self._executor.carry_out(reconcile(pod, podgroup, annotations, of_owner=of_owner), pod)

    async def _read_owner(self, kind: ResourceType, name: str, namespace: str) -> Stated:
        try:
            owner = await self._client.get(kind, name, namespace)
        except (NotFound, Forbidden) as error:
            log.warning("%s %s/%s: %s; its pods are scheduled one by one", kind.kind, namespace, name, error)
            return UNKNOWN
        job = rayjob_of(owner) if kind is RAYCLUSTER else ""
        try:
            return stated(kind, owner, await self._client.get(RAYJOB, job, namespace) if job else None)
        except (NotFound, Forbidden) as error:
            log.warning("RayJob %s/%s: %s; how long it may run is unknown", namespace, job, error)
            return stated(kind, owner)

    async def _follow(self, workload: Workload) -> None:
        """Delete the PodGroup if no pods are left. Otherwise update it to the newest template, taken from a pod."""
        metadata = workload.metadata
        podgroup = self._podgroups.get(f"{metadata.namespace}/podgroup-{metadata.uid}")
        if workload.spec.replicas == 0:
            controller = podgroup.metadata.controller if podgroup is not None else None
            if podgroup is not None and controller is not None and controller.uid == metadata.uid:
                found = podgroup.metadata
                delete = Delete(kinds.PODGROUP, found.namespace, found.name, found.uid)
                await self._executor.carry_out([delete], workload)
            return
        pods = self._pods.by_index(metadata.uid)
        if isinstance(workload, StatefulSet) and (revision := workload.status.update_revision):
            # with a partition, or OnDelete, the newest pod may use the previous template
            pods = [pod for pod in pods if (pod.metadata.labels or {}).get(REVISION) == revision]
        pod = max(pods, key=_newest, default=None)
        if pod is None or pod.spec.scheduler_name not in self._scheduler_names:
            return
        if group_of(pod) in ("", podgroup_name(pod)) and not (podgroup is None and self._does_without(pod)):
            await self._keep(pod, update=True)

    async def _owner_annotations(self, pod: Pod) -> list[dict[str, str]]:
        if not self._inherit:
            return []
        owners = [owner for owner in pod.metadata.owner_references or () if owner.kind in OWNER_KINDS]
        return [await self._annotations_of(owner, pod.metadata) for owner in owners]

    async def _annotations_of(self, owner: OwnerReference, pod: ObjectMeta) -> dict[str, str]:
        known = self._owners.get(owner.uid)
        if known is None:
            known = {}
            mirror = self._workloads.get(owner.kind)
            rt = kinds.BY_KIND.get((owner.api_version, owner.kind))
            found: _Owner | Workload | None = mirror.get(f"{pod.namespace}/{owner.name}") if mirror else None
            if found is None and rt is not None:
                try:
                    found = await self._client.get(rt, owner.name, pod.namespace, type=_Owner)
                except NotFound:
                    found = None
            if found is not None:
                known = within(found.metadata.annotations or {}, _most_at_once(owner.kind, found))
                known = with_deadline(known, _deadline(owner.kind, found))
            self._owners[owner.uid] = known
            if len(self._owners) > OWNERS_KEPT:
                self._owners.popitem(last=False)
        return known


def _most_at_once(kind: str, owner: _Owner | Workload) -> int | None:
    """The number of pods that exist at a time; None: unknown.

    A rolling update creates the pods of a new ReplicaSet a few at a time, and waits for each to run; so does a
    StatefulSet, unless its pods are managed in parallel.
    """
    spec = owner.spec
    if kind == "StatefulSet" and spec.pod_management_policy != "Parallel":
        return 1
    if isinstance(spec, _OwnerSpec) and kind == "Job":
        parallelism = 1 if spec.parallelism is None else spec.parallelism
        return parallelism if spec.completions is None else min(parallelism, spec.completions)
    return spec.replicas if kind in ("ReplicaSet", "StatefulSet") else None


def _deadline(kind: str, owner: _Owner | Workload) -> int | None:
    """After how many seconds the pods of a Job have ended, as it states."""
    spec = owner.spec
    return spec.active_deadline_seconds if kind == "Job" and isinstance(spec, _OwnerSpec) else None


def _newest(pod: Pod) -> tuple[bool, str]:
    """Pods that are not being deleted first, then the newest (RFC 3339 times sort as text)."""
    return (pod.metadata.deletion_timestamp is None, pod.metadata.creation_timestamp or "")
