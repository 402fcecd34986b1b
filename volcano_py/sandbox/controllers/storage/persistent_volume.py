"""Binds claims to volumes, and reclaims volumes of deleted claims. Kubernetes: the persistent volume controller.

There is no storage: a StorageClass with any provisioner creates a volume immediately. A class that waits for its first
consumer binds when a pod that uses the claim has a node, or the claim contains the selected one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from volcano_py.sandbox.apiserver.registry.api import Api
from volcano_py.sandbox.apiserver.storage.store import DELETED, Entry, Event
from volcano_py.sandbox.controllers.runtime.client import Client
from volcano_py.sandbox.controllers.runtime.runner import Controller
from volcano_py.sandbox.controllers.storage import volume_match as match

Object = dict[str, Any]
Item = tuple[str, str]  # a collection and a key

CLAIMS, VOLUMES, CLASSES = "persistentvolumeclaims", "persistentvolumes", "storageclasses.storage.k8s.io"
_CLAIM_BYTES, _EPHEMERAL_BYTES = b'"persistentVolumeClaim":', b'"ephemeral":'


def controller(api: Api) -> Controller:
    volumes = PersistentVolumes(api)
    return Controller(
        "persistentvolume-binder",
        volumes.sync,
        wakes={
            CLAIMS: volumes.claim_changed,
            VOLUMES: volumes.volume_changed,
            CLASSES: volumes.class_changed,
            "pods": volumes.pod_changed,
        },
    )


def claims_of(pod: Object) -> list[str]:
    """The keys of the claims that a pod uses."""
    namespace = pod["metadata"]["namespace"]
    found = []
    for row in pod["spec"].get("volumes") or ():
        if row.get("persistentVolumeClaim"):
            found.append(f"{namespace}/{row['persistentVolumeClaim']['claimName']}")
        elif row.get("ephemeral"):
            found.append(f"{namespace}/{pod['metadata']['name']}-{row['name']}")
    return found


def _has_claims(entry: Entry) -> bool:
    return _CLAIM_BYTES in entry.tail or _EPHEMERAL_BYTES in entry.tail


class PersistentVolumes:
    def __init__(self, api: Api) -> None:
        self.client = Client(api, "persistentvolume-controller")
        self.claims = api.resource("", CLAIMS).collection
        self.volumes = api.resource("", VOLUMES).collection
        self.classes = api.resource("storage.k8s.io", "storageclasses").collection
        self.pods = api.resource("", "pods").collection
        self.nodes = api.resource("", "nodes").collection
        self.pending: set[str] = set()  # claims without a volume

    # --- events ------------------------------------------------------------------------------------------------------

    def claim_changed(self, event: Event) -> Iterable[Item]:
        key = event.entry.key
        if event.type == DELETED:
            self.pending.discard(key)
            name = event.entry.load()["spec"].get("volumeName")
            if name:
                yield VOLUMES, name
            return
        if b'"phase":"Bound"' not in event.entry.tail:
            self.pending.add(key)
        yield CLAIMS, key

    def volume_changed(self, event: Event) -> Iterable[Item]:
        reference = event.entry.load()["spec"].get("claimRef")
        if reference is not None:
            yield CLAIMS, f"{reference.get('namespace', '')}/{reference.get('name', '')}"
        elif event.type != DELETED:
            yield from self._all_pending()
        if event.type != DELETED:
            yield VOLUMES, event.entry.key

    def class_changed(self, event: Event) -> Iterable[Item]:
        return self._all_pending()

    def pod_changed(self, event: Event) -> Iterable[Item]:
        entry = event.entry
        if self.pending and entry.fields["spec.nodeName"] and _has_claims(entry) and event.type != DELETED:
            yield from ((CLAIMS, key) for key in claims_of(entry.load()) if key in self.pending)

    def _all_pending(self) -> list[Item]:
        return [(CLAIMS, key) for key in sorted(self.pending)]

    # --- syncs -------------------------------------------------------------------------------------------------------

    async def sync(self, item: Any) -> None:
        collection, key = item
        entry = self.client.api.store.collections[collection].entries.get(key)
        if entry is None:
            return
        if collection == VOLUMES:
            await self._sync_volume(entry)
        else:
            claim = self.client.get(CLAIMS, key)
            assert claim is not None
            await self._sync_claim(claim, key)

    async def _sync_claim(self, claim: Object, key: str) -> None:
        phase = (claim.get("status") or {}).get("phase")
        bound = claim["metadata"].get("annotations", {}).get(match.BIND_COMPLETED)
        name = claim["spec"].get("volumeName", "")
        if bound and name:
            volume = self.client.get(VOLUMES, name)
            if volume is None or not match.is_reserved_for(volume, claim):
                await self.client.set_status(CLAIMS, claim, {**(claim.get("status") or {}), "phase": "Lost"})
            elif phase != "Bound":
                await self._bind(claim, key, volume)
            else:
                self.pending.discard(key)
            return
        if claim["metadata"].get("deletionTimestamp"):
            return
        volume = await self._choose(claim, key)
        if volume is not None:
            await self._bind(claim, key, volume)

    async def _choose(self, claim: Object, key: str) -> Object | None:
        """The volume for a claim; None while it must wait."""
        name = claim["spec"].get("volumeName", "")
        if name:
            volume = self.client.get(VOLUMES, name)
            free = volume is not None and volume["spec"].get("claimRef") is None
            return volume if volume is not None and (free or match.is_reserved_for(volume, claim)) else None
        storage_class = await self._class_of(claim, key)
        node = ""
        if storage_class is not None and storage_class.get("volumeBindingMode") == "WaitForFirstConsumer":
            node = self._node_of(claim, key)
            taken = match.reserved(claim, [entry.load() for entry in self.volumes.select()])
            if taken is not None:
                return taken
            if not node:
                text = "waiting for first consumer to be created before binding"
                await self.client.event(claim, "Normal", "WaitForFirstConsumer", text)
                return None
        there = [entry.load() for entry in self.volumes.select()]
        entry = self.nodes.entries.get(node)
        volume = match.find(claim, there, entry.labels if entry is not None else None)
        if volume is not None:
            return volume
        if storage_class is None:
            await self._report_unbound(claim)
            return None
        if storage_class["provisioner"] == match.NO_PROVISIONER:
            text = "no persistent volumes available for this claim, and its class provisions none"
            await self.client.event(claim, "Normal", "FailedBinding", text)
            return None
        made = await self.client.create(VOLUMES, match.provision(claim, storage_class, node))
        text = f"Successfully provisioned volume {made['metadata']['name']}"
        await self.client.event(claim, "Normal", "ProvisioningSucceeded", text)
        return made

    async def _report_unbound(self, claim: Object) -> None:
        name = claim["spec"].get("storageClassName")
        if name:
            text = f'storageclass.storage.k8s.io "{name}" not found'
            await self.client.event(claim, "Warning", "ProvisioningFailed", text)
        else:
            text = "no persistent volumes available for this claim and no storage class is set"
            await self.client.event(claim, "Normal", "FailedBinding", text)

    async def _class_of(self, claim: Object, key: str) -> Object | None:
        """The class of a claim; a claim without one gets the default one, if it exists."""
        name = claim["spec"].get("storageClassName")
        if name is None:
            chosen = match.default_class([entry.load() for entry in self.classes.select()])
            if chosen is None:
                return None
            name = chosen["metadata"]["name"]
            claim["spec"]["storageClassName"] = name
            await self.client.update(CLAIMS, key, lambda obj: obj["spec"].update(storageClassName=name))
        return self.client.get(CLASSES, name) if name else None

    def _node_of(self, claim: Object, key: str) -> str:
        """The node of a claim: the selected one, or that of a pod that uses it."""
        selected: str = (claim["metadata"].get("annotations") or {}).get(match.SELECTED_NODE, "")
        if selected:
            return selected
        for entry in self.pods.select(claim["metadata"]["namespace"]):
            node = entry.fields["spec.nodeName"]
            if node and _has_claims(entry) and key in claims_of(entry.load()):
                return node
        return ""

    async def _bind(self, claim: Object, key: str, volume: Object) -> None:
        """Bind claim and volume to each other, the volume first."""
        reference = volume["spec"].get("claimRef")
        name = volume["metadata"]["name"]
        if reference is None or not reference.get("uid"):
            wanted = match.claim_reference(claim)

            def take(obj: Object) -> None:
                if obj["spec"].get("claimRef") is None:
                    obj["metadata"].setdefault("annotations", {})[match.BOUND_BY] = "yes"
                obj["spec"]["claimRef"] = wanted

            await self.client.update(VOLUMES, name, take)
        chosen = not claim["spec"].get("volumeName")

        def complete(obj: Object) -> None:
            annotations = obj["metadata"].setdefault("annotations", {})
            annotations[match.BIND_COMPLETED] = "yes"
            if chosen:
                annotations[match.BOUND_BY] = "yes"
            obj["spec"]["volumeName"] = name

        await self.client.update(CLAIMS, key, complete, uid=claim["metadata"]["uid"])
        spec = volume["spec"]
        status = {"phase": "Bound", "accessModes": spec.get("accessModes"), "capacity": spec.get("capacity")}
        await self.client.set_status(CLAIMS, claim, status)
        self.pending.discard(key)

    async def _sync_volume(self, entry: Entry) -> None:
        """Set the phase of a volume, and reclaim it when its claim is deleted."""
        volume = entry.load()
        reference = volume["spec"].get("claimRef")
        claim: Object | None = None
        if reference is not None:
            claim = self.client.get(CLAIMS, f"{reference.get('namespace', '')}/{reference.get('name', '')}")
        if reference is None or not reference.get("uid"):
            phase = "Available"
        elif claim is not None and claim["metadata"]["uid"] == reference["uid"]:
            phase = "Bound"
        else:
            phase = "Released"
        if (volume.get("status") or {}).get("phase") != phase:
            await self.client.set_status(VOLUMES, volume, {"phase": phase})
        if phase == "Released" and not volume["metadata"].get("deletionTimestamp"):
            await self._reclaim(entry, volume["spec"]["persistentVolumeReclaimPolicy"])

    async def _reclaim(self, entry: Entry, policy: str) -> None:
        if policy == "Delete":
            await self.client.delete(VOLUMES, entry)
        elif policy == "Recycle":
            await self.client.update(VOLUMES, entry.key, lambda obj: obj["spec"].pop("claimRef", None))
