"""The kubelets' interface to an API server in the same process: the store itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from volcano_py.sandbox.apiserver.apimachinery import metadata
from volcano_py.sandbox.apiserver.registry.api import Api
from volcano_py.sandbox.apiserver.storage.store import ADDED, DELETED, MODIFIED, Entry, Event
from volcano_py.sandbox.controllers.node import node_selector
from volcano_py.sandbox.controllers.runtime.client import Client

Object = dict[str, Any]

LEASE_NAMESPACE = "kube-node-lease"
LEASE_SECONDS = 40


class LocalCluster:
    """Implements ports.ClusterPort on an Api."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.pods = api.resource("", "pods")
        self.nodes = api.resource("", "nodes")
        self.leases = api.resource("coordination.k8s.io", "leases")
        self._client = Client(api, "kubelet")
        self._events: set[asyncio.Task[None]] = set()

    def watch_pods(self, handler: Callable[[str, Object], None], accepts: Callable[[Any], bool]) -> None:
        """Report pods that have a node, as (type, entry)."""

        def observe(event: Event) -> None:
            if event.entry.fields["spec.nodeName"] and accepts(event):
                handler(event.type, event.entry)  # type: ignore[arg-type]

        self.pods.collection.observers.append(observe)
        for entry in list(self.pods.collection.select()):
            if entry.fields["spec.nodeName"]:
                handler(ADDED, entry)  # type: ignore[arg-type]

    def watch_nodes(self, handler: Callable[[str, Object], None]) -> None:
        def observe(event: Event) -> None:
            handler(event.type, event.entry)  # type: ignore[arg-type]

        self.nodes.collection.observers.append(observe)
        for entry in list(self.nodes.collection.select()):
            handler(ADDED, entry)  # type: ignore[arg-type]

    def pod_addresses(self) -> list[str]:
        return [entry.fields.get("status.podIP", "") for entry in self.pods.collection.select()]

    def pod(self, namespace: str, name: str) -> Object | None:
        return _load(self.pods.collection.get(namespace, name))

    def set_pod_status(self, pod: Object) -> None:
        self.api.write(self.pods, MODIFIED, pod)

    def remove_pod(self, namespace: str, name: str, uid: str) -> None:
        entry = self.pods.collection.get(namespace, name)
        if entry is None or entry.uid != uid:
            return
        pod = entry.load()
        meta = pod["metadata"]
        if meta.get("finalizers"):
            # stopped, but it has finalizers
            if meta.get("deletionGracePeriodSeconds") != 0:
                meta["deletionGracePeriodSeconds"] = 0
                self.api.write(self.pods, MODIFIED, pod)
            return
        self.api.write(self.pods, DELETED, pod)

    def node(self, name: str) -> Object | None:
        return _load(self.nodes.collection.get("", name))

    def set_node(self, node: Object) -> None:
        self.api.write(self.nodes, MODIFIED, node)

    def renew_lease(self, node: str, uid: str) -> None:
        entry = self.leases.collection.get(LEASE_NAMESPACE, node)
        if entry is not None:
            lease = entry.load()
            lease["spec"]["renewTime"] = metadata.now_micro()
            self.api.write(self.leases, MODIFIED, lease)
            return
        lease = {
            "metadata": {
                "name": node,
                "namespace": LEASE_NAMESPACE,
                "uid": metadata.new_uid(),
                "creationTimestamp": metadata.now(),
                "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}],
            },
            "spec": {
                "holderIdentity": node,
                "leaseDurationSeconds": LEASE_SECONDS,
                "renewTime": metadata.now_micro(),
            },
        }
        self.api.write(self.leases, ADDED, lease)

    def lookup(self, plural: str, namespace: str, name: str) -> Object | None:
        group = "resource.k8s.io" if plural == "resourceclaims" else ""
        resource = self.api.registry.find(group, plural)
        return _load(resource.collection.get(namespace, name)) if resource is not None else None

    def node_matches(self, name: str, terms: list[Object]) -> bool:
        entry = self.nodes.collection.get("", name)
        return entry is not None and node_selector.matches(terms, entry.labels, name)

    def event(self, pod: Object, type_: str, reason: str, message: str) -> None:
        about = {"apiVersion": "v1", "kind": "Pod", **pod}
        task = asyncio.create_task(self._client.event(about, type_, reason, message))
        self._events.add(task)
        task.add_done_callback(self._events.discard)

    def append_log(self, uid: str, container: str, text: str) -> None:
        key = f"{uid}/{container}"
        line = f"{metadata.now_micro()} {text}\n".encode()
        self.api.logs[key] = self.api.logs.get(key, b"") + line

    def forget_logs(self, uid: str) -> None:
        prefix = uid + "/"
        for key in [key for key in self.api.logs if key.startswith(prefix)]:
            del self.api.logs[key]


def _load(entry: Entry | None) -> Object | None:
    return entry.load() if entry is not None else None
