"""Deletes pods that no kubelet stops: those of nodes that are deleted or out of service. Kubernetes: pod GC."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from volcano_py.sandbox.apiserver.registry.api import Api
from volcano_py.sandbox.apiserver.storage.store import DELETED, Event
from volcano_py.sandbox.controllers.node.node_taints import OUT_OF_SERVICE
from volcano_py.sandbox.controllers.node.taint_eviction import mark_disrupted
from volcano_py.sandbox.controllers.runtime.client import Client
from volcano_py.sandbox.controllers.runtime.runner import Controller

Object = dict[str, Any]

_OUT_OF_SERVICE = OUT_OF_SERVICE.encode()


def controller(api: Api, quarantine: float) -> Controller:
    """quarantine: seconds that a node must be missing before its pods are deleted."""
    client = Client(api, "pod-garbage-collector")
    nodes, pods = api.resource("", "nodes").collection, api.resource("", "pods").collection

    def node_changed(event: Event) -> Iterable[str]:
        if event.type == DELETED or _OUT_OF_SERVICE in event.entry.tail:
            yield event.entry.name

    def pod_changed(event: Event) -> Iterable[str]:
        name = event.entry.fields["spec.nodeName"]
        if name and name not in nodes.entries and event.type != DELETED:
            yield name

    async def sync(name: Any) -> None:
        node = nodes.entries.get(name)
        obj = node.load() if node is not None else None
        if obj is not None and not _is_out_of_service(obj):
            return
        for entry in [row for row in pods.select() if row.fields["spec.nodeName"] == name]:
            if obj is not None and b'"deletionTimestamp":' not in entry.tail:
                continue  # on a node that is out of service only terminating pods are deleted
            if entry.fields["status.phase"] not in ("Succeeded", "Failed"):
                text = "PodGC: node no longer exists" if obj is None else "PodGC: node is out of service"
                await mark_disrupted(client, entry, "DeletionByPodGC", text, "Failed")
            await client.delete("pods", entry, grace=0)

    return Controller(
        "pod-garbage-collector", sync, wakes={"nodes": node_changed, "pods": pod_changed}, gather=quarantine
    )


def _is_out_of_service(node: Object) -> bool:
    return any(row["key"] == OUT_OF_SERVICE for row in (node.get("spec") or {}).get("taints") or ())
