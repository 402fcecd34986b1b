"""Nodes whose kubelet sends no heartbeats, and the taints for nodes' conditions.

Kubernetes: the node lifecycle controller. A heartbeat is a renewal of the node's Lease. A node that never had one has
no kubelet, and only its own conditions count.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from volcano_py.sandbox.apiserver.apimachinery import metadata
from volcano_py.sandbox.apiserver.apimachinery.errors import StatusError
from volcano_py.sandbox.apiserver.registry.api import Api
from volcano_py.sandbox.apiserver.storage.store import DELETED, Entry, Event
from volcano_py.sandbox.controllers.node.node_taints import desired_taints
from volcano_py.sandbox.controllers.runtime.client import Client
from volcano_py.sandbox.controllers.runtime.pods import Pods
from volcano_py.sandbox.controllers.runtime.runner import Controller

Object = dict[str, Any]

LEASES = "leases.coordination.k8s.io"
LEASE_NAMESPACE = "kube-node-lease"
KUBELETS_CONDITIONS = ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
REASON, MESSAGE = "NodeStatusUnknown", "Kubelet stopped posting node status."


def controller(api: Api, pods: Pods, grace: float) -> Controller:
    """grace: seconds without a heartbeat after which the conditions of a node become Unknown."""
    nodes = NodeLifecycle(api, pods, grace)
    return Controller("node-controller", nodes.sync, wakes={LEASES: nodes.lease_changed, "nodes": nodes.node_changed})


class NodeLifecycle:
    def __init__(self, api: Api, pods: Pods, grace: float) -> None:
        self.client = Client(api, "node-controller")
        self.nodes = api.resource("", "nodes").collection
        self.pods = pods
        self.grace = grace
        self.heartbeats: dict[str, float] = {}  # loop time of the last heartbeat
        self.lost: set[str] = set()

    def lease_changed(self, event: Event) -> Iterable[str]:
        """Record the heartbeat; sync only nodes that are new or were lost."""
        name = event.entry.name
        if event.entry.namespace != LEASE_NAMESPACE:
            return
        if event.type == DELETED:
            self.heartbeats.pop(name, None)
            return
        known = name in self.heartbeats
        self.heartbeats[name] = asyncio.get_running_loop().time()
        if not known or name in self.lost:
            yield name

    def node_changed(self, event: Event) -> Iterable[str]:
        if event.type == DELETED:
            self.lost.discard(event.entry.name)
        else:
            yield event.entry.name

    async def sync(self, name: Any) -> float | None:
        entry = self.nodes.entries.get(name)
        if entry is None:
            return None
        heartbeat = self.heartbeats.get(name)
        left = None if heartbeat is None else heartbeat + self.grace - asyncio.get_running_loop().time()
        node = entry.load()
        if left is not None and left <= 0:
            if name not in self.lost or not is_unknown(node):
                self.lost.add(name)
                node = await self._set_unknown(entry, node)
            left = None  # the next heartbeat starts a sync
        else:
            self.lost.discard(name)
        await self._taint(entry, node)
        return left

    async def _set_unknown(self, entry: Entry, node: Object) -> Object:
        """Set the conditions of the node to Unknown, and its pods to not ready."""
        rows = unknown_conditions((node.get("status") or {}).get("conditions") or [], metadata.now())
        if rows != (node.get("status") or {}).get("conditions"):
            node.setdefault("status", {})["conditions"] = rows

            def change(obj: Object) -> None:
                obj.setdefault("status", {})["conditions"] = rows

            await self.client.update("nodes", entry.key, change, uid=entry.uid, status=True)
            reference = {"apiVersion": "v1", "kind": "Node", "name": entry.name, "uid": entry.uid}
            text = f"Node {entry.name} status is now: NodeNotReady"
            await self.client.event(reference, "Normal", "NodeNotReady", text)
        here = [row for row in self.pods.collection.select() if row.fields["spec.nodeName"] == entry.name]
        for pod in self.pods.of(here):
            if pod.ready:
                await self._unready(pod.entry)
        return node

    async def _unready(self, pod: Entry) -> None:
        def change(obj: Object) -> None:
            for row in obj["status"].get("conditions") or ():
                if row["type"] == "Ready":
                    row |= {"status": "False", "lastTransitionTime": metadata.now(), "reason": "NodeNotReady"}

        try:
            await self.client.update("pods", pod.key, change, uid=pod.uid, status=True)
        except StatusError as error:
            if error.code not in (404, 409):
                raise

    async def _taint(self, entry: Entry, node: Object) -> None:
        desired = desired_taints(node, metadata.now())
        if desired != ((node.get("spec") or {}).get("taints") or []):
            stamp = metadata.now()

            def change(obj: Object) -> None:
                obj.setdefault("spec", {})["taints"] = desired_taints(obj, stamp)

            await self.client.update("nodes", entry.key, change, uid=entry.uid)


def is_unknown(node: Object) -> bool:
    """Whether the Ready condition of the node is Unknown."""
    rows = (node.get("status") or {}).get("conditions") or ()
    return any(row["type"] == "Ready" and row["status"] == "Unknown" for row in rows)


def unknown_conditions(rows: list[Object], stamp: str) -> list[Object]:
    """The conditions of a node without heartbeats."""
    out = []
    for row in rows:
        if row["type"] in KUBELETS_CONDITIONS and row["status"] != "Unknown":
            row = {**row, "status": "Unknown", "lastTransitionTime": stamp, "reason": REASON, "message": MESSAGE}
        out.append(row)
    return out
