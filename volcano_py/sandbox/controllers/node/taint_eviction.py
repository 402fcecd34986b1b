"""Evicts pods from nodes whose NoExecute taints they do not tolerate, or no longer tolerate.

Kubernetes: the taint eviction controller.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from volcano_py.sandbox.apiserver.apimachinery import metadata
from volcano_py.sandbox.apiserver.apimachinery.errors import StatusError
from volcano_py.sandbox.apiserver.registry.api import Api, complete
from volcano_py.sandbox.apiserver.storage.store import DELETED, Entry, Event
from volcano_py.sandbox.controllers.node.node_taints import executing, seconds_to_eviction
from volcano_py.sandbox.controllers.runtime.client import Client
from volcano_py.sandbox.controllers.runtime.runner import Controller

Object = dict[str, Any]

_NO_EXECUTE = b'"effect":"NoExecute"'


def controller(api: Api) -> Controller:
    evictions = TaintEviction(api)
    return Controller(
        "taint-eviction-controller",
        evictions.sync,
        wakes={"nodes": evictions.node_changed, "pods": evictions.pod_changed},
    )


class TaintEviction:
    def __init__(self, api: Api) -> None:
        self.client = Client(api, "taint-eviction-controller")
        self.resource = api.resource("", "pods")
        self.pods = self.resource.collection
        self.taints: dict[str, list[Object]] = {}  # NoExecute taints by node

    def node_changed(self, event: Event) -> Iterable[str]:
        name = event.entry.name
        if event.type == DELETED or _NO_EXECUTE not in event.entry.tail:
            self.taints.pop(name, None)
            return
        taints = executing(event.entry.load())
        if taints != self.taints.get(name):
            self.taints[name] = taints
            yield from (row.key for row in self.pods.select() if row.fields["spec.nodeName"] == name)

    def pod_changed(self, event: Event) -> Iterable[str]:
        if self.taints and event.type != DELETED and event.entry.fields["spec.nodeName"] in self.taints:
            yield event.entry.key

    async def sync(self, key: Any) -> float | None:
        entry = self.pods.entries.get(key)
        taints = self.taints.get(entry.fields["spec.nodeName"]) if entry is not None else None
        if entry is None or not taints:
            return None
        pod = entry.load()
        if pod["metadata"].get("deletionTimestamp") or entry.fields["status.phase"] in ("Succeeded", "Failed"):
            return None
        left = seconds_to_eviction(pod, taints, time.time())
        if left == 0:
            await self._evict(entry, pod)
            return None
        return left

    async def _evict(self, entry: Entry, pod: Object) -> None:
        text = f"Marking for deletion Pod {entry.key}"
        await self.client.event(complete(self.resource, pod), "Normal", "TaintManagerEviction", text)
        await mark_disrupted(
            self.client, entry, "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint"
        )
        await self.client.delete("pods", entry)


async def mark_disrupted(client: Client, pod: Entry, reason: str, message: str, phase: str = "") -> None:
    """Add DisruptionTarget to a pod's conditions; also set its phase, if one is given."""

    def change(obj: Object) -> None:
        status = obj.setdefault("status", {})
        row = {"type": "DisruptionTarget", "status": "True", "lastProbeTime": None, "reason": reason}
        row |= {"lastTransitionTime": metadata.now(), "message": message}
        rows = [other for other in status.get("conditions") or () if other["type"] != row["type"]]
        status["conditions"] = [*rows, row]
        if phase:
            status["phase"] = phase

    try:
        await client.update("pods", pod.key, change, uid=pod.uid, status=True)
    except StatusError as error:
        if error.code not in (404, 409):
            raise
