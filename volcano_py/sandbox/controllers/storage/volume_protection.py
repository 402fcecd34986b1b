"""Protects claims in use by pods, and bound volumes. Kubernetes: the PVC and PV protection controllers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from volcano_py.sandbox.apiserver.registry.api import Api
from volcano_py.sandbox.apiserver.storage.store import DELETED, Event
from volcano_py.sandbox.controllers.runtime.client import Client
from volcano_py.sandbox.controllers.runtime.runner import Controller
from volcano_py.sandbox.controllers.storage.persistent_volume import CLAIMS, VOLUMES, claims_of

Object = dict[str, Any]
Item = tuple[str, str]  # a collection and a key

FINALIZERS = {CLAIMS: "kubernetes.io/pvc-protection", VOLUMES: "kubernetes.io/pv-protection"}
_DELETING = b'"deletionTimestamp":'
_CLAIM_BYTES = b'"persistentVolumeClaim":'


def controller(api: Api) -> Controller:
    client = Client(api, "pvc-protection-controller")
    pods = api.resource("", "pods").collection
    waiting: set[str] = set()  # terminating claims that were in use

    def going(collection: str) -> Any:
        def changed(event: Event) -> Iterable[Item]:
            if event.type == DELETED:
                waiting.discard(event.entry.key)
            elif _DELETING in event.entry.tail:
                yield collection, event.entry.key

        return changed

    def pod_changed(event: Event) -> Iterable[Item]:
        over = event.type == DELETED or event.entry.fields["status.phase"] in ("Succeeded", "Failed")
        if waiting and over and _CLAIM_BYTES in event.entry.tail:
            yield from ((CLAIMS, key) for key in claims_of(event.entry.load()) if key in waiting)

    def in_use(key: str) -> bool:
        rows = (entry for entry in pods.select(key.partition("/")[0]) if _CLAIM_BYTES in entry.tail)
        alive = (entry for entry in rows if entry.fields["status.phase"] not in ("Succeeded", "Failed"))
        return any(key in claims_of(entry.load()) for entry in alive)

    async def sync(item: Any) -> None:
        collection, key = item
        obj = client.get(collection, key)
        finalizer = FINALIZERS[collection]
        if obj is None or not obj["metadata"].get("deletionTimestamp"):
            return
        if finalizer not in (obj["metadata"].get("finalizers") or ()):
            return
        if collection == CLAIMS and in_use(key):
            waiting.add(key)
            return
        if collection == VOLUMES and (obj.get("status") or {}).get("phase") == "Bound":
            return  # its next phase starts a sync

        def change(copy: Object) -> None:
            copy["metadata"]["finalizers"] = [row for row in copy["metadata"]["finalizers"] if row != finalizer]

        await client.update(collection, key, change, uid=obj["metadata"]["uid"])

    return Controller(
        "volume-protection-controller",
        sync,
        wakes={CLAIMS: going(CLAIMS), VOLUMES: going(VOLUMES), "pods": pod_changed},
    )
