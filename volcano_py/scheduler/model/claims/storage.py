"""Storage: the objects of volumes, and the pods of each claim. Volcano: the listers and assume caches of VolumeBinding.

It looks up objects and tracks changes; `volume_demand` derives the requirements of a pod's volumes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from typing import Any

from volcano_py.api import core, storage
from volcano_py.scheduler.model.jobs.pre_bind import BindVolume, PreBindStep, SelectNode

KINDS = frozenset(
    (
        "PersistentVolumeClaim",
        "PersistentVolume",
        "StorageClass",
        "CSINode",
        "CSIDriver",
        "CSIStorageCapacity",
        "VolumeAttachment",
    )
)
IGNORED_PROVISIONERS = frozenset(("rancher.io/local-path", "hostpath.csi.k8s.io"))
"""Provisioners of node-local volumes: their volumes do not count against a limit. Volcano: --ignored-provisioners adds
to them."""
VOLUME_RESOURCE = "attachable-volumes-csi-"
UNLIMITED = 2**31 - 1
"""The limit of a driver that a CSINode lists without a limit."""
_OLD_CLASS = "volume.beta.kubernetes.io/storage-class"


def class_of_claim(claim: storage.PersistentVolumeClaim) -> str:
    """The name of a claim's StorageClass; "" if it has none."""
    return (claim.metadata.annotations or {}).get(_OLD_CLASS) or claim.spec.storage_class_name or ""


def claim_names(pod: core.Pod) -> list[tuple[str, bool]]:
    """The PersistentVolumeClaims of a pod's volumes, each with whether it is ephemeral (created for this pod)."""
    found: list[tuple[str, bool]] = []
    for volume in pod.spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            found.append((volume.persistent_volume_claim.claim_name, False))
        elif volume.ephemeral is not None:
            found.append((f"{pod.metadata.name}-{volume.name}", True))
    return found


def share(users: set[str], pod: str, used: bool) -> set[str]:
    """Add a pod to the users of a claim, or remove it.

    Returns the pods that depend on whether the claim is shared: also the pod itself, whose demand was determined before
    it was a user.
    """
    if not used:
        users.discard(pod)
        return users
    users.add(pod)
    return users if len(users) > 1 else set()


class Storage:
    """Lookups over `objects` (by kind and key), and the assumptions of binds in flight."""

    def __init__(self, objects: dict[str, dict[str, Any]]) -> None:
        self._objects = objects
        self.generation = 0
        """Incremented with every change."""
        self.volumes_generation = 0
        """Incremented when a PersistentVolume changes."""
        self.csi_generation = 0
        """Incremented when a CSINode changes."""
        self.users: dict[str, set[str]] = defaultdict(set)
        """Unfinished pods by the claim that they refer to, both as `namespace/name`."""
        self.free: dict[str, dict[str, storage.PersistentVolume]] = defaultdict(dict)
        """PersistentVolumes that are reserved for no claim, by StorageClass and name."""
        self.reserved: dict[str, dict[str, storage.PersistentVolume]] = defaultdict(dict)
        """PersistentVolumes whose claimRef refers to a claim, by that claim."""
        self.volume_taken: dict[str, dict[str, BindVolume]] = {}
        """The assumed reservations of binds in flight, by volume and the bind's pod (its uid)."""
        self.node_selected: dict[str, dict[str, SelectNode]] = {}
        """Nodes that binds in flight have selected, by claim and the bind's pod (its uid)."""
        self.attached: dict[str, set[str]] = {}
        """The VolumeAttachments of each node, by name."""
        self.touched: set[str] = set()
        """Pods whose volumes must be evaluated again."""
        self.all_touched = False
        self._places: dict[str, tuple[str, str]] = {}
        self._attached_to: dict[str, str] = {}
        self._limited: dict[str, dict[str, int]] = {}
        """The maximum number of volumes of each driver per node, where it is limited."""

    # ---- objects ------------------------------------------------------------------------------------------

    def changed(self, kind: str, key: str) -> None:
        """An object was added, changed or removed."""
        self.generation += 1
        if kind == "CSINode":
            self.csi_generation += 1
            self._read_limits(key)
        if kind == "PersistentVolume":
            self.volumes_generation += 1
            self._index(key, self.volume(key))
        elif kind == "VolumeAttachment":
            self._attach(key)
        elif kind != "PersistentVolumeClaim":
            self._touch_all()
        else:
            self.touched |= self.users.get(key, set())
            if self._has_node(self.claim(key)):
                self.node_selected.pop(key, None)

    def _index(self, name: str, volume: storage.PersistentVolume | None) -> None:
        of_class, of_claim = self._places.pop(name, ("", ""))
        had = bool(self.free[of_class])
        self.free[of_class].pop(name, None)
        self.reserved[of_claim].pop(name, None)
        self.touched |= self.users.get(of_claim, set())
        if volume is None:
            self.volume_taken.pop(name, None)
            self._touch_all()
            return
        ref = volume.spec.claim_ref
        new_class = volume.spec.storage_class_name
        claim = f"{ref.namespace}/{ref.name}" if ref is not None else ""
        self._places[name] = (new_class, claim)
        if ref is not None:
            self.reserved[claim][name] = volume
            self.volume_taken.pop(name, None)
            self.touched |= self.users.get(claim, set())
        else:
            self.free[new_class][name] = volume
        if had != bool(self.free[of_class]) or len(self.free[new_class]) == 1:
            self._touch_all()

    def _attach(self, name: str) -> None:
        here = self.attached.get(self._attached_to.pop(name, ""), set())
        here.discard(name)
        found: storage.VolumeAttachment | None = self._objects.get("VolumeAttachment", {}).get(name)
        if found is not None:
            self._attached_to[name] = found.spec.node_name
            self.attached.setdefault(found.spec.node_name, set()).add(name)

    def _read_limits(self, name: str) -> None:
        for nodes in self._limited.values():
            nodes.pop(name, None)
        found = self.csi_node(name)
        for driver in (found.spec.drivers if found is not None else None) or ():
            if driver.allocatable is not None and driver.allocatable.count is not None:
                self._limited.setdefault(driver.name, {})[name] = driver.allocatable.count

    def _touch_all(self) -> None:
        self.all_touched = self.all_touched or any(self.users.values())

    def claim(self, key: str) -> storage.PersistentVolumeClaim | None:
        return self._objects.get("PersistentVolumeClaim", {}).get(key)

    def volume(self, name: str) -> storage.PersistentVolume | None:
        return self._objects.get("PersistentVolume", {}).get(name)

    def storage_class(self, name: str) -> storage.StorageClass | None:
        return self._objects.get("StorageClass", {}).get(name)

    def csi_node(self, name: str) -> storage.CSINode | None:
        return self._objects.get("CSINode", {}).get(name)

    def checks_capacity(self, provisioner: str) -> bool:
        """Whether the provisioner publishes its remaining capacity."""
        driver: storage.CSIDriver | None = self._objects.get("CSIDriver", {}).get(provisioner)
        return driver is not None and bool(driver.spec.storage_capacity)

    def capacities(self, storage_class: str) -> list[storage.CSIStorageCapacity]:
        found = self._objects.get("CSIStorageCapacity", {}).values()
        return [c for c in found if c.storage_class_name == storage_class]

    def handles_attached_to(self, node: str) -> set[tuple[str, str]]:
        """The CSI volumes (driver, handle) of a node's VolumeAttachments."""
        objects: dict[str, storage.VolumeAttachment] = self._objects.get("VolumeAttachment", {})
        names = (objects[name].spec.source.persistent_volume_name for name in self.attached.get(node, ()))
        volumes = (self.volume(name) for name in names if name)
        found = (v.spec.csi for v in volumes if v is not None)
        return {(csi.driver, csi.volume_handle) for csi in found if csi is not None}

    def drivers(self) -> set[str]:
        """The CSI drivers of all nodes."""
        nodes = self._objects.get("CSINode", {}).values()
        return {driver.name for node in nodes for driver in node.spec.drivers or ()}

    def limited_nodes(self, drivers: Collection[str]) -> dict[str, int]:
        """The nodes that limit the volumes of one of some drivers, with the lowest limit."""
        found: dict[str, int] = {}
        for driver in drivers:
            for name, limit in self._limited.get(driver, {}).items():
                found[name] = min(limit, found.get(name, limit))
        return found

    def limit(self, node: str, driver: str) -> int | None:
        """The maximum number of volumes of a driver on a node; None: unlimited."""
        return self._limited.get(driver, {}).get(node)

    def limits(self, node: str) -> dict[str, int]:
        """The maximum number of volumes of each driver on a node, by resource name."""
        found = self.csi_node(node)
        return {
            VOLUME_RESOURCE + driver.name: UNLIMITED
            if driver.allocatable is None or driver.allocatable.count is None
            else driver.allocatable.count
            for driver in (found.spec.drivers if found is not None else None) or ()
        }

    # ---- users ---------------------------------------------------------------------------------------------

    def use(self, pod: core.Pod, used: bool) -> None:
        """Record that a pod uses its claims, or no longer does."""
        key = pod.metadata.key
        for name, _ in claim_names(pod):
            self.touched |= share(self.users[f"{pod.metadata.namespace}/{name}"], key, used)

    # ---- binds in flight -----------------------------------------------------------------------------------

    def assume(self, uid: str, step: PreBindStep) -> None:
        """Count a step of the bind of a pod as done, until an event confirms it or the bind is forgotten."""
        self.generation += 1
        self._touch(step)
        if self._is_shown(step):
            return
        if isinstance(step, BindVolume):
            self.volume_taken.setdefault(step.volume, {})[uid] = step
        elif isinstance(step, SelectNode):
            self.node_selected.setdefault(f"{step.namespace}/{step.claim}", {})[uid] = step

    def _is_shown(self, step: PreBindStep) -> bool:
        """Whether an event has already confirmed the effect of a step: no other event follows."""
        match step:
            case BindVolume():
                volume = self.volume(step.volume)
                return volume is None or volume.spec.claim_ref is not None
            case SelectNode():
                return self._has_node(self.claim(f"{step.namespace}/{step.claim}"))
            case _:
                return False

    def _has_node(self, claim: storage.PersistentVolumeClaim | None) -> bool:
        """Whether a claim has a volume or a selected node, or is deleted."""
        if claim is None or claim.spec.volume_name:
            return True
        return bool((claim.metadata.annotations or {}).get(storage.SELECTED_NODE))

    def forget(self, uid: str, step: PreBindStep) -> None:
        """Undo `assume`."""
        self.generation += 1
        self._touch(step)
        if isinstance(step, BindVolume):
            _drop(self.volume_taken, step.volume, uid)
        elif isinstance(step, SelectNode):
            _drop(self.node_selected, f"{step.namespace}/{step.claim}", uid)

    def _touch(self, step: PreBindStep) -> None:
        if isinstance(step, BindVolume | SelectNode):
            self.touched |= self.users.get(f"{step.namespace}/{step.claim}", set())

    def owner(self, volume: storage.PersistentVolume) -> tuple[str, str]:
        """The claim for which a volume is reserved, as `namespace/name`, and its uid; "" if it is not reserved or the
        claimRef has no uid."""
        ref = volume.spec.claim_ref
        if ref is not None:
            return f"{ref.namespace}/{ref.name}", ref.uid
        for step in self.volume_taken.get(volume.metadata.name, {}).values():
            return f"{step.namespace}/{step.claim}", step.uid
        return "", ""

    def selected_node(self, claim: storage.PersistentVolumeClaim) -> str:
        """The node selected for a claim's provisioning; "" if none is."""
        for step in self.node_selected.get(claim.metadata.key, {}).values():
            return step.node
        return (claim.metadata.annotations or {}).get(storage.SELECTED_NODE) or ""


def _drop(table: dict[str, dict[str, Any]], key: str, uid: str) -> None:
    steps = table.get(key)
    if steps is not None:
        steps.pop(uid, None)
        if not steps:
            del table[key]
