"""VolumeDemand: the requirements of a pod's volumes for nodes. kube-scheduler: PreFilter of VolumeBinding, VolumeZone
and NodeVolumeLimits; Volcano: the volume resources of NewTaskInfo.

It is derived from the pod and the storage objects, and derived again when one of them changes. Pods whose claims wait
for the same type of volume are equal for nodes, so the demand without the claims' names is part of the pod's class.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

import msgspec

from volcano_py.api import core, quantity, storage
from volcano_py.api.meta import LabelSelector
from volcano_py.scheduler.model.claims.csi_migration import DRIVERS, csi_source, csi_source_of
from volcano_py.scheduler.model.claims.storage import VOLUME_RESOURCE, Storage, claim_names, class_of_claim

_encoder = msgspec.msgpack.Encoder()
ZONE_LABELS = (
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
)
READ_WRITE_ONCE_POD = "ReadWriteOncePod"


class VolumeCounting(Enum):
    """Which volumes Volcano counts as resources of their pods, each for every pod that uses it. kube-scheduler counts
    none: its NodeVolumeLimits counts a volume once on each node."""

    NONE = 0
    KNOWN_DRIVERS = 1
    """Those whose driver some node has."""
    ALL = 2


class WaitingClaim(NamedTuple):
    """A claim that waits for its first consumer."""

    key: str
    uid: str
    resource_version: str
    storage_class: str
    size: int
    """Bytes; 0 if the claim sets none."""
    access_modes: tuple[str, ...]
    volume_mode: str
    selector: LabelSelector | None
    selected: str
    """The node that is selected for its provisioning."""
    named: bool
    """Another pod uses it, or a volume is reserved for it: it differs from other claims of its type."""


class Provision(NamedTuple):
    """Where a volume of a class can be provisioned."""

    error: str
    """The error if the class does not exist."""
    possible: bool
    topologies: list[storage.TopologySelectorTerm]
    nodes: list[LabelSelector] | None
    """Selectors of the nodes with enough capacity; None: it is not checked."""


class VolumeDemand(NamedTuple):
    """See the module. The texts are kube-scheduler's."""

    problem: str = ""
    """Why no node accepts the pod: the message of VolumeBinding's PreFilter."""
    zone_problem: str = ""
    """As `problem`, of VolumeZone."""
    bound: tuple[storage.PersistentVolume, ...] = ()
    missing: bool = False
    """Whether a claim is bound to a volume that does not exist."""
    waiting: tuple[WaitingClaim, ...] = ()
    matched: bool = False
    """Whether a waiting claim could be bound to an existing volume, or another pod shares one: the result changes while
    pods are placed."""
    provisions: tuple[Provision, ...] = ()
    """The provisioning of each waiting claim."""
    zones: tuple[tuple[str, frozenset[str]], ...] = ()
    handles: tuple[tuple[str, str, bool], ...] = ()
    """(driver, handle, whether only this pod can use it) of each CSI volume."""
    counted: tuple[str, ...] = ()
    """One resource name for each volume that counts against a node's limit."""
    csi_nodes: int = 0
    """With volumes of former built-in plugins: the generation of the CSINodes, on which their reach depends."""
    exclusive: tuple[str, ...] = ()
    """Claims that only one pod may use at a time (ReadWriteOncePod)."""
    disks: tuple[core.Volume, ...] = ()
    """Volumes of the pod that may be disks which two pods of a node cannot share."""
    key: bytes = b""
    """Equal for pods with equal requirements."""


def volume_demand(
    pod: core.Pod, of: Storage, ignored_provisioners: frozenset[str], counting: VolumeCounting
) -> VolumeDemand | None:
    """The demand of a pod; None if it has no claims and no volumes that concern nodes.

    Raises ValueError for an ephemeral volume whose claim belongs to another object.
    """
    names = claim_names(pod)
    inline = [source for volume in pod.spec.volumes or () if (source := csi_source(volume)) is not None]
    disks = tuple(volume for volume in pod.spec.volumes or () if is_disk(volume))
    if not names and not inline and not disks:
        return None
    found = _Reader(pod, of, ignored_provisioners, counting).read(names)
    if inline or disks:
        handles = {*found.handles, *((driver, handle, False) for driver, handle in inline)}
        found = found._replace(handles=tuple(sorted(handles)), disks=disks)
        found = found._replace(key=_key(found))
    return found


def is_disk(volume: core.Volume) -> bool:
    """Whether a volume is a disk or image of a built-in plugin, which pods of one node cannot share for writing."""
    return bool(volume.gce_persistent_disk or volume.aws_elastic_block_store or volume.rbd or volume.iscsi)


class _Reader:
    """Reads the claims of one pod."""

    def __init__(self, pod: core.Pod, of: Storage, ignored: frozenset[str], counting: VolumeCounting) -> None:
        self._pod = pod
        self._of = of
        self._ignored = ignored
        self._counting = counting
        self._known_drivers = of.drivers() if counting is VolumeCounting.KNOWN_DRIVERS else None
        self._problem = self._immediate = self._zone_problem = ""
        self._bound: list[storage.PersistentVolume] = []
        self._missing = False
        self._waiting: list[WaitingClaim] = []
        self._provisions: list[Provision] = []
        self._matched = False
        self._zones: list[tuple[str, frozenset[str]]] = []
        self._handles: list[tuple[str, str, bool]] = []
        self._counted: list[str] = []
        self._exclusive: list[str] = []

    def read(self, names: list[tuple[str, bool]]) -> VolumeDemand:
        for name, ephemeral in names:
            key = f"{self._pod.metadata.namespace}/{name}"
            claim = self._of.claim(key)
            if claim is None:
                self._zone(f'persistentvolumeclaim "{name}" not found', ephemeral)
                waits = "waiting for ephemeral volume controller to create the "
                missing = f'persistentvolumeclaim "{name}"'
                self._fail(waits + missing if ephemeral else f"{missing} not found")
                continue
            if ephemeral:
                self._check_owner(claim)
            self._claim(claim, ephemeral)
        if self._problem and any(self._of.claim(f"{self._pod.metadata.namespace}/{name}") is None for name, _ in names):
            # Volcano adds a pod with a missing claim without its other volumes.
            self._counted.clear()
        waiting = sorted(zip(self._waiting, self._provisions, strict=True), key=lambda w: w[0].size)
        found = VolumeDemand(
            self._problem or self._immediate,
            self._zone_problem,
            tuple(self._bound),
            self._missing,
            tuple(w for w, _ in waiting),
            self._matched,
            tuple(p for _, p in waiting),
            tuple(self._zones),
            tuple(sorted(self._handles)),
            tuple(sorted(self._counted)),
            self._of.csi_generation if any(csi_source(v.spec) is not None for v in self._bound) else 0,
            tuple(sorted(self._exclusive)),
        )
        return found._replace(key=_key(found))

    def _fail(self, problem: str) -> None:
        self._problem = self._problem or problem

    def _zone(self, problem: str, ephemeral: bool) -> None:
        if not ephemeral:
            self._zone_problem = self._zone_problem or problem

    def _check_owner(self, claim: storage.PersistentVolumeClaim) -> None:
        owner = claim.metadata.controller
        if owner is None or owner.uid != self._pod.metadata.uid:
            raise ValueError(
                f"spec.volumes: PersistentVolumeClaim {claim.metadata.key} was not created for this pod; delete or "
                "rename it"
            )

    def _claim(self, claim: storage.PersistentVolumeClaim, ephemeral: bool) -> None:
        spec, name, key = claim.spec, claim.metadata.name, claim.metadata.key
        if claim.status.phase == "Lost":
            self._fail(f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{spec.volume_name}"')
        if claim.metadata.deletion_timestamp:
            self._fail(f'persistentvolumeclaim "{name}" is being deleted')
        volume = self._of.volume(spec.volume_name) if spec.volume_name else None
        class_name = class_of_claim(claim)
        storage_class = self._of.storage_class(class_name) if class_name else None
        self._count(claim, volume, storage_class)
        if READ_WRITE_ONCE_POD in (spec.access_modes or ()):
            self._exclusive.append(key)
        if not ephemeral:
            self._read_zone(claim, volume, class_name, storage_class)
        if spec.volume_name and storage.BIND_COMPLETED in (claim.metadata.annotations or {}):
            if volume is None:
                self._missing = True
            else:
                self._bound.append(volume)
        elif storage_class is not None and storage_class.volume_binding_mode is None:
            self._fail(f'VolumeBindingMode not set for StorageClass "{class_name}"')
        elif (
            storage_class is not None
            and storage_class.volume_binding_mode == storage.WAIT_FOR_FIRST_CONSUMER
            and not spec.volume_name
        ):
            self._wait(claim, class_name)
        else:
            self._immediate = "pod has unbound immediate PersistentVolumeClaims"

    def _wait(self, claim: storage.PersistentVolumeClaim, class_name: str) -> None:
        spec, key = claim.spec, claim.metadata.key
        requests = spec.resources.requests or {}
        size = quantity.value(requests["storage"]) if "storage" in requests else 0
        waiting = WaitingClaim(
            key,
            claim.metadata.uid,
            claim.metadata.resource_version,
            class_name,
            size,
            tuple(spec.access_modes or ()),
            spec.volume_mode or "Filesystem",
            spec.selector,
            self._of.selected_node(claim),
            self._is_shared(key) or bool(self._of.reserved.get(key)),
        )
        self._waiting.append(waiting)
        self._provisions.append(self._provision(class_name, size if "storage" in requests else None))
        self._matched = self._matched or waiting.named or bool(self._of.free.get(class_name))

    def _is_shared(self, key: str) -> bool:
        return len(self._of.users.get(key, ())) > 1

    def _provision(self, class_name: str, size: int | None) -> Provision:
        found = self._of.storage_class(class_name)
        if found is None:
            return Provision(f'failed to find storage class "{class_name}"', False, [], None)
        possible = found.provisioner not in ("", storage.NO_PROVISIONER)
        nodes: list[LabelSelector] | None = None
        if possible and size is not None and self._of.checks_capacity(found.provisioner):
            enough = (c for c in self._of.capacities(class_name) if volume_limit(c) >= size)
            nodes = [c.node_topology for c in enough if c.node_topology is not None]
        return Provision("", possible, found.allowed_topologies or [], nodes)

    def _count(
        self,
        claim: storage.PersistentVolumeClaim,
        volume: storage.PersistentVolume | None,
        storage_class: storage.StorageClass | None,
    ) -> None:
        """The CSI driver and handle of a claim's volume."""
        driver = ""
        if volume is not None:
            driver = volume.spec.csi.driver if volume.spec.csi is not None else ""
            handle = volume.spec.csi.volume_handle if volume.spec.csi is not None else ""
            alone = False
            migrated = csi_source_of(volume) if not driver else None
            if migrated is not None:  # Volcano does not count it as a resource
                self._handles.append((*migrated, False))
        elif storage_class is not None:
            driver = (storage_class.parameters or {}).get("csi.storage.k8s.io/csi-driver-name") or ""
            driver = driver or storage_class.provisioner
            handle, alone = f"{claim.metadata.key}", not self._is_shared(claim.metadata.key)
        if not driver:
            return
        limited = storage_class.provisioner if volume is None and storage_class is not None else driver
        self._handles.append((DRIVERS.get(limited, limited), handle, alone))
        known = self._known_drivers is None or driver in self._known_drivers
        if self._counting is not VolumeCounting.NONE and driver not in self._ignored and known:
            self._counted.append(VOLUME_RESOURCE + driver.replace("/", "-"))

    def _read_zone(
        self,
        claim: storage.PersistentVolumeClaim,
        volume: storage.PersistentVolume | None,
        class_name: str,
        storage_class: storage.StorageClass | None,
    ) -> None:
        if claim.spec.volume_name:
            if volume is None:
                self._zone(f'persistentvolume "{claim.spec.volume_name}" not found', False)
                return
            for label in ZONE_LABELS:
                value = (volume.metadata.labels or {}).get(label)
                if value is not None:
                    self._zones.append((label, frozenset(value.split("__"))))
        elif not class_name:
            self._zone("PersistentVolumeClaim had no pv name and storageClass name", False)
        elif storage_class is None:
            self._zone(f'storageclass.storage.k8s.io "{class_name}" not found', False)
        elif storage_class.volume_binding_mode is None:
            self._zone(f'VolumeBindingMode not set for StorageClass "{class_name}"', False)
        elif storage_class.volume_binding_mode != storage.WAIT_FOR_FIRST_CONSUMER:
            self._zone("PersistentVolume had no name", False)


def volume_limit(capacity: storage.CSIStorageCapacity) -> int:
    """The size of the largest volume that can be provisioned."""
    amount = capacity.capacity if capacity.maximum_volume_size is None else capacity.maximum_volume_size
    return -1 if amount is None else quantity.value(amount)


def _key(demand: VolumeDemand) -> bytes:
    """The parts that concern nodes: names of claims are included only where something else depends on them."""
    return _encoder.encode(
        (
            demand.problem,
            demand.zone_problem,
            [(v.metadata.name, v.spec.node_affinity) for v in demand.bound],
            demand.missing,
            [(w[3:], w.key if w.named else "") for w in demand.waiting],
            demand.matched,
            demand.provisions,
            [(label, sorted(values)) for label, values in demand.zones],
            [(driver, "" if alone else handle) for driver, handle, alone in demand.handles],
            demand.counted,
            demand.csi_nodes,
            demand.exclusive,
            demand.disks,
        )
    )
