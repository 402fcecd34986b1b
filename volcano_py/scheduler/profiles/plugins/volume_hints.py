"""Which events can help a pod that a rule about volumes refused. Kubernetes: the queueing hints of VolumeBinding,
VolumeRestrictions, VolumeZone and NodeVolumeLimits."""

from __future__ import annotations

from volcano_py.api import quantity, storage
from volcano_py.scheduler.model.volume_demand import ZONE_LABELS
from volcano_py.scheduler.profiles.pod_info import PodInfo

_MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"


def own_claim(pod: PodInfo, _: object, new: storage.PersistentVolumeClaim | None) -> bool:
    """A PersistentVolumeClaim that the pod names."""
    return new is not None and new.metadata.namespace == pod.namespace and _names(pod, new.metadata.name)


def shares_claim(pod: PodInfo, old: PodInfo | None, _: object) -> bool:
    """A pod left that named a claim of this one."""
    return (
        old is not None
        and old.namespace == pod.namespace
        and any(not ephemeral and _names(pod, name) for name, ephemeral in old.volume_claims)
    )


def had_volumes(pod: PodInfo, old: PodInfo | None, _: object) -> bool:
    """A pod with volumes left."""
    return old is not None and bool(old.volume_claims)


def has_volumes(pod: PodInfo, _: object, __: object) -> bool:
    """The pod has volumes, which a detached volume may help."""
    return bool(pod.volume_claims)


def waits_for_consumer(pod: PodInfo, _: object, new: storage.StorageClass | None) -> bool:
    """A class whose claims wait for their first consumer."""
    return new is not None and new.volume_binding_mode == storage.WAIT_FOR_FIRST_CONSUMER


def other_topologies(pod: PodInfo, old: storage.StorageClass | None, new: storage.StorageClass | None) -> bool:
    """A class that is new, or allows other topologies."""
    return new is not None and (old is None or old.allowed_topologies != new.allowed_topologies)


def other_zones(pod: PodInfo, old: storage.PersistentVolume | None, new: storage.PersistentVolume | None) -> bool:
    """A volume that is new, or in other zones."""
    return new is not None and (old is None or _zones(old) != _zones(new))


def higher_limit(pod: PodInfo, old: storage.CSINode | None, new: storage.CSINode | None) -> bool:
    """A driver takes more volumes on a node."""
    if old is None or new is None:
        return new is not None
    before, after = _limits(old), _limits(new)
    return any(driver not in after or after[driver] > limit for driver, limit in before.items())


def other_migration(pod: PodInfo, old: storage.CSINode | None, new: storage.CSINode | None) -> bool:
    """A node that is new to its drivers, or to which other kinds of volumes migrate."""
    return new is not None and (old is None or _migrated(old) != _migrated(new))


def capacity_unchecked(pod: PodInfo, old: storage.CSIDriver | None, new: storage.CSIDriver | None) -> bool:
    """The capacity of a driver is not checked any more."""
    return old is not None and new is not None and bool(old.spec.storage_capacity) and not new.spec.storage_capacity


def more_capacity(pod: PodInfo, old: storage.CSIStorageCapacity | None, new: storage.CSIStorageCapacity | None) -> bool:
    """Larger volumes can be made than before."""
    return new is not None and (old is None or _largest(new) > _largest(old))


def _names(pod: PodInfo, claim: str) -> bool:
    return any(name == claim for name, _ in pod.volume_claims)


def _zones(volume: storage.PersistentVolume) -> dict[str, str]:
    labels = volume.metadata.labels or {}
    return {label: labels[label] for label in ZONE_LABELS if label in labels}


def _limits(node: storage.CSINode) -> dict[str, int]:
    counts = {d.name: d.allocatable.count for d in node.spec.drivers or () if d.allocatable is not None}
    return {name: count for name, count in counts.items() if count is not None}


def _migrated(node: storage.CSINode) -> str | None:
    return (node.metadata.annotations or {}).get(_MIGRATED)


def _largest(capacity: storage.CSIStorageCapacity) -> int:
    amount = capacity.capacity if capacity.maximum_volume_size is None else capacity.maximum_volume_size
    return -1 if amount is None else quantity.value(amount)
