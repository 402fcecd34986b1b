"""Claims of pods' ephemeral volumes. Kubernetes: the ephemeral volume controller."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from volcano_py.sandbox.apiserver.registry.api import Api
from volcano_py.sandbox.apiserver.storage.store import DELETED, Event
from volcano_py.sandbox.controllers.runtime.client import Client
from volcano_py.sandbox.controllers.runtime.runner import Controller

_BYTES = b'"ephemeral":'


def controller(api: Api) -> Controller:
    client = Client(api, "ephemeral-volume-controller")

    def pod_changed(event: Event) -> Iterable[str]:
        if event.type != DELETED and _BYTES in event.entry.tail:
            yield event.entry.key

    async def sync(key: Any) -> None:
        pod = client.get("pods", key)
        if pod is None or pod["metadata"].get("deletionTimestamp"):
            return
        meta = pod["metadata"]
        for volume in pod["spec"].get("volumes") or ():
            template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
            name = f"{meta['name']}-{volume['name']}"
            if template is None or client.get("persistentvolumeclaims", f"{meta['namespace']}/{name}") is not None:
                continue
            owner = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
            given = template.get("metadata") or {}
            await client.create(
                "persistentvolumeclaims",
                {
                    "apiVersion": "v1",
                    "kind": "PersistentVolumeClaim",
                    "metadata": {
                        "name": name,
                        "namespace": meta["namespace"],
                        "labels": given.get("labels") or {},
                        "annotations": given.get("annotations") or {},
                        "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
                    },
                    "spec": template["spec"],
                },
            )

    return Controller("ephemeral-volume-controller", sync, wakes={"pods": pod_changed})
