"""The events that can help a pod that a plugin for volumes rejected. Kubernetes: the queueing hints of VolumeBinding,
VolumeRestrictions, VolumeZone and NodeVolumeLimits."""

from __future__ import annotations

from volcano_py.api import quantity, storage
from volcano_py.scheduler.model.claims.volume_demand import ZONE_LABELS
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo

_MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"


def own_claim(pod: PodInfo, _: object, new: storage.PersistentVolumeClaim | None) -> bool:
    """Whether a PersistentVolumeClaim is one of the pod's."""
    return new is not None and new.metadata.namespace == pod.namespace and _names(pod, new.metadata.name)


def shares_claim(pod: PodInfo, old: PodInfo | None, _: object) -> bool:
    """Whether a pod was deleted that used a claim of this pod."""
    return (
        old is not None
        and old.namespace == pod.namespace
        and any(not ephemeral and _names(pod, name) for name, ephemeral in old.volume_claims)
    )


def had_volumes(pod: PodInfo, old: PodInfo | None, _: object) -> bool:
    """Whether a pod with volumes was deleted."""
    return old is not None and bool(old.volume_claims)


def has_volumes(pod: PodInfo, _: object, __: object) -> bool:
    """Whether the pod has volumes, so that a detached volume may help."""
    return bool(pod.volume_claims)


def waits_for_consumer(pod: PodInfo, _: object, new: storage.StorageClass | None) -> bool:
    """Whether the claims of a StorageClass wait for their first consumer."""
    return new is not None and new.volume_binding_mode == storage.WAIT_FOR_FIRST_CONSUMER


def other_topologies(pod: PodInfo, old: storage.StorageClass | None, new: storage.StorageClass | None) -> bool:
    """Whether a StorageClass was created, or allows other topologies."""
    return new is not None and (old is None or old.allowed_topologies != new.allowed_topologies)


def other_zones(pod: PodInfo, old: storage.PersistentVolume | None, new: storage.PersistentVolume | None) -> bool:
    """Whether a volume was created, or is in other zones."""
    return new is not None and (old is None or _zones(old) != _zones(new))


def higher_limit(pod: PodInfo, old: storage.CSINode | None, new: storage.CSINode | None) -> bool:
    """Whether a driver accepts more volumes on a node."""
    if old is None or new is None:
        return new is not None
    before, after = _limits(old), _limits(new)
    return any(driver not in after or after[driver] > limit for driver, limit in before.items())


def other_migration(pod: PodInfo, old: storage.CSINode | None, new: storage.CSINode | None) -> bool:
    """Whether the drivers of a node are new, or other kinds of volumes migrate to them."""
    return new is not None and (old is None or _migrated(old) != _migrated(new))


def capacity_unchecked(pod: PodInfo, old: storage.CSIDriver | None, new: storage.CSIDriver | None) -> bool:
    """Whether the capacity of a driver is not checked any more."""
    return old is not None and new is not None and bool(old.spec.storage_capacity) and not new.spec.storage_capacity


def more_capacity(pod: PodInfo, old: storage.CSIStorageCapacity | None, new: storage.CSIStorageCapacity | None) -> bool:
    """Whether larger volumes can be provisioned than before."""
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
