"""Publishes a Numatopology for each node with NUMA nodes: their CPUs, and those that pods have. Volcano: the
resource-exporter, which reads the state of the kubelet's CPU manager on its node.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from volcano_py.sandbox import numa
from volcano_py.sandbox.apiserver.registry.api import Api
from volcano_py.sandbox.apiserver.storage.store import DELETED, Event
from volcano_py.sandbox.controllers.runtime.client import Client
from volcano_py.sandbox.controllers.runtime.runner import Controller

Object = dict[str, Any]

TOPOLOGIES = "numatopologies.nodeinfo.volcano.sh"
_LAYOUT = f'"{numa.LAYOUT}":'.encode()
_ENDED = ("Succeeded", "Failed")


def controller(api: Api) -> Controller:
    client = Client(api, "resource-exporter")
    pods = api.resource("", "pods").collection
    with_layout: set[str] = set()

    def node_changed(event: Event) -> Iterable[str]:
        name = event.entry.name
        if event.type != DELETED and _LAYOUT in event.entry.tail:
            with_layout.add(name)
            yield name
        else:
            with_layout.discard(name)

    def pod_changed(event: Event) -> Iterable[str]:
        node = event.entry.fields["spec.nodeName"]
        if node in with_layout:
            yield node

    def alive(node: str) -> dict[str, Object]:
        """The pods on a node that have not ended, by UID."""
        here = [e for e in pods.entries.values() if e.fields["spec.nodeName"] == node]
        found = [pod for entry in here if (pod := client.get("pods", entry.key)) is not None]
        return {p["metadata"]["uid"]: p for p in found if (p.get("status") or {}).get("phase") not in _ENDED}

    async def sync(name: Any) -> None:
        node = client.get("nodes", name)
        layout = numa.layout_of(node) if node is not None else None
        if node is None or layout is None or TOPOLOGIES not in api.store.collections:
            return
        spec = topology(layout, numa.assigned(node), alive(name))
        current = client.get(TOPOLOGIES, name)
        if current is None:
            owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node["metadata"]["uid"]}
            meta = {"name": name, "ownerReferences": [owner]}
            body = {"apiVersion": "nodeinfo.volcano.sh/v1alpha1", "kind": "Numatopology", "metadata": meta}
            await client.create(TOPOLOGIES, {**body, "spec": spec})
        elif current.get("spec") != spec:
            await client.update(TOPOLOGIES, name, lambda obj: obj.update(spec=spec))

    return Controller("resource-exporter", sync, wakes={"nodes": node_changed, "pods": pod_changed}, gather=0.05)


def topology(layout: numa.Layout, assigned: dict[str, dict[str, str]], alive: dict[str, Object]) -> Object:
    """The spec of a Numatopology."""
    by_name = sorted(assigned.keys() & alive.keys(), key=lambda uid: alive[uid]["metadata"]["name"])
    held = {uid: assigned[uid] for uid in by_name}
    every = numa.all_cpus(layout)
    return {
        "policies": {"CPUManagerPolicy": "static", "TopologyManagerPolicy": layout.policy},
        "numares": {"cpu": {"allocatable": numa.cpuset(every - numa.used(held)), "capacity": len(every)}},
        "cpuDetail": {
            str(cpu): {"numa": cpu // layout.cpus, "socket": cpu // layout.cpus, "core": cpu} for cpu in sorted(every)
        },
        "podAllocations": [
            {
                "uid": uid,
                "name": alive[uid]["metadata"]["name"],
                "namespace": alive[uid]["metadata"]["namespace"],
                "containerAllocations": [{"name": c, "allocations": {"cpu": text}} for c, text in cpus.items()],
            }
            for uid, cpus in held.items()
        ],
    }
