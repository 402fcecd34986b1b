"""All kubelets in one: a common loop with timers advances every bound pod through its phases.

Events are queued and handled a few at a time, so that a burst of bindings does not delay the API server in the same
process.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Any

from volcano_py.sandbox import numa
from volcano_py.sandbox.apiserver.apimachinery import metadata
from volcano_py.sandbox.apiserver.storage.store import DELETED
from volcano_py.sandbox.kubelet import devices, nodes, resume
from volcano_py.sandbox.kubelet.clock import Clock
from volcano_py.sandbox.kubelet.containers import BACKOFF_FIRST, Containers
from volcano_py.sandbox.kubelet.endings import Endings
from volcano_py.sandbox.kubelet.pod_table import PodState, PodTable
from volcano_py.sandbox.kubelet.ports import ClusterPort
from volcano_py.sandbox.kubelet.processes.runtime import Processes
from volcano_py.sandbox.kubelet.resume import address_number

LOG = logging.getLogger(__name__)
Object = dict[str, Any]

SLICE = 40  # queued items that are handled before other tasks run
LEASE_PERIOD = 10.0  # seconds between renewals of a node's Lease
_FINISHED = ("Succeeded", "Failed")
_GIVEN_UP = b'"reason":"NodeNotReady"'  # in the Ready condition of a pod that the node controller has set to not ready


class Kubelets:
    """The kubelet of every node without the annotation hollow=false.

    serves: selects the nodes. processes: runs containers' commands; None: all pods are hollow.
    """

    def __init__(
        self,
        cluster: ClusterPort,
        *,
        leases: bool = True,
        backoff: float = BACKOFF_FIRST,
        clock: Clock | None = None,
        processes: Processes | None = None,
        serves: Callable[[Object], bool] = nodes.is_hollow,
    ) -> None:
        self.cluster = cluster
        self.serves = serves
        self.clock = clock or Clock()
        self.processes = processes
        self.table = PodTable(cluster, self.clock, processes, self._enqueue)
        self.endings = Endings(self.table)
        self.containers = Containers(self.table, self.endings, backoff)
        self.leases = leases
        self.nodes: dict[str, str] = {}  # name to uid
        self.hosts: dict[str, str] = {}  # name to the node's address
        self.pinning: set[str] = set()  # the nodes that assign whole CPUs
        self.queue: deque[tuple[Any, ...]] = deque()
        self.scheduled = False
        self.number = 0
        self.addresses = 0
        self.started = self.stopped = False
        self._lease_task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start with the existing nodes and pods."""
        self.addresses = max(map(address_number, self.cluster.pod_addresses()), default=0)
        self.cluster.watch_nodes(lambda type_, entry: self._enqueue(self._node_event, type_, entry, self.started))
        self.cluster.watch_pods(
            lambda type_, entry: self._enqueue(self._pod_event, type_, entry), self._concerns_kubelet
        )
        self.started = True
        if self.leases:
            self._lease_task = asyncio.create_task(self._renew_leases())

    def stop(self) -> None:
        self.stopped = True
        self.queue.clear()
        if self._lease_task is not None:
            self._lease_task.cancel()
        for pod in self.table.pods.values():
            pod.cancel()
        self.clock.stop()

    def _concerns_kubelet(self, event: Any) -> bool:
        """A fast test for pod events that a kubelet must handle: new pods, terminating or deleted ones."""
        entry = event.entry
        known = self.table.pods.get((entry.namespace, entry.name))
        if known is None or event.type == DELETED or known.uid != entry.uid:
            return True
        if _GIVEN_UP in entry.tail and not known.stopping:
            return True
        # the deadline of a stopping pod may have become earlier
        return (self.processes is not None or not known.stopping) and b'"deletionTimestamp":' in entry.tail

    def _enqueue(self, function: Any, *arguments: Any) -> None:
        self.queue.append((function, *arguments))
        if not self.scheduled and not self.stopped:
            self.scheduled = True
            asyncio.get_running_loop().call_soon(self._drain)

    def _drain(self) -> None:
        self.scheduled = False
        for _ in range(min(SLICE, len(self.queue))):
            function, *arguments = self.queue.popleft()
            try:
                function(*arguments)
            except Exception:
                LOG.exception("a kubelet could not handle an event")
        if self.queue and not self.stopped:
            self.scheduled = True
            asyncio.get_running_loop().call_soon(self._drain)

    # --- nodes -------------------------------------------------------------------------------------------------------

    def _node_event(self, type_: str, entry: Any, adopt: bool) -> None:
        """Handle an added (its pods are searched when `adopt`), changed or deleted node."""
        name = entry.name
        if type_ == DELETED:
            if self.nodes.get(name) == entry.uid:
                del self.nodes[name]
                self.hosts.pop(name, None)
                self.pinning.discard(name)
                self._delete_pods_of(name)
            return
        failed = nodes.has_failed(entry)
        if self.nodes.get(name) == entry.uid:
            if failed:
                self._stop_reporting(name)
            elif nodes.is_lost(entry):
                self._report(name)
            return
        node = self.cluster.node(name)
        if failed or node is None or not self.serves(node):
            return
        self.nodes[name] = node["metadata"]["uid"]
        if numa.layout_of(node) is not None:
            self.pinning.add(name)
        self.number += 1
        changed = nodes.register(node, self.number)
        rows = node["status"]["addresses"]
        self.hosts[name] = next((row["address"] for row in rows if row["type"] == "InternalIP"), "")
        self.number = max(self.number, nodes.number_of(self.hosts[name]))
        if changed:
            self.cluster.set_node(node)
        if self.leases:
            self.cluster.renew_lease(name, self.nodes[name])
        if adopt:
            self._adopt(name)

    def _report(self, name: str) -> None:
        """Report a node and its pods again after the node controller set them to not ready because of a late heartbeat.

        This happens when the process was stopped, or had no CPU time, for longer than the node controller's limit.
        """
        node = self.cluster.node(name)
        if node is None:
            return
        if nodes.register(node, self.number):
            self.cluster.set_node(node)
        if self.leases:
            self.cluster.renew_lease(name, self.nodes[name])
        for key in self._pods_of(name):
            self._enqueue(self.containers.report, *key)

    def _adopt(self, name: str) -> None:
        """Start pods that were bound before their node was added."""
        for namespace, pod_name in self._pods_of(name):
            self._enqueue(self._begin, namespace, pod_name)

    def _stop_reporting(self, name: str) -> None:
        """Let a node fail: its kubelet reports nothing. When it is ready again, its pods continue."""
        del self.nodes[name]
        for key in self._pods_of(name):
            state = self.table.pods.pop(key, None)
            if state is not None:
                self.table.drop(state)

    def _delete_pods_of(self, name: str) -> None:
        """Delete the pods of a deleted node."""
        for namespace, pod_name in self._pods_of(name):
            pod = self.cluster.pod(namespace, pod_name)
            if pod is not None:
                self.cluster.remove_pod(namespace, pod_name, pod["metadata"]["uid"])

    def _pods_of(self, name: str) -> list[tuple[str, str]]:
        collection = self.cluster.pods.collection  # type: ignore[attr-defined]
        return [(e.namespace, e.name) for e in collection.select() if e.fields["spec.nodeName"] == name]

    async def _renew_leases(self) -> None:
        """Renew every node's Lease once a period, a tenth of them at a time."""
        turn = 0
        while True:
            await asyncio.sleep(LEASE_PERIOD / 10)
            turn = (turn + 1) % 10
            for index, (name, uid) in enumerate(list(self.nodes.items())):
                if index % 10 == turn and name in self.nodes:
                    self.cluster.renew_lease(name, uid)
                    if index % 500 == turn:
                        await asyncio.sleep(0)

    # --- pods --------------------------------------------------------------------------------------------------------

    def _pod_event(self, type_: str, entry: Any) -> None:
        key = (entry.namespace, entry.name)
        known = self.table.pods.get(key)
        if type_ == DELETED:
            if self.processes is not None:
                self.processes.forget(*key, entry.uid)
            if known is not None and known.uid == entry.uid:
                known.cancel()
                del self.table.pods[key]
                self.cluster.forget_logs(entry.uid)
            return
        if known is not None and known.uid != entry.uid:
            self.table.drop(known)
            del self.table.pods[key]
            known = None
        if b'"deletionTimestamp":' in entry.tail:
            pod = self.cluster.pod(*key)
            if pod is not None and pod["metadata"].get("deletionTimestamp"):
                self._end(key, pod, known)
                return
        if known is None:
            self._begin(*key)
        elif _GIVEN_UP in entry.tail and entry.fields["spec.nodeName"] in self.nodes:
            self.containers.report(*key)

    def _begin(self, namespace: str, name: str) -> None:
        pod = self.cluster.pod(namespace, name)
        if pod is None or (namespace, name) in self.table.pods:
            return
        if pod["spec"].get("nodeName") not in self.nodes:
            return
        if (pod.get("status") or {}).get("phase") in _FINISHED:
            return
        if pod["metadata"].get("deletionTimestamp"):
            self._end((namespace, name), pod, None)
            return
        if resume.began(pod):
            self.containers.resume(pod)
            return
        pins = pod["spec"]["nodeName"] in self.pinning and numa.whole_cpus(pod)
        if (pins or devices.has_devices(pod)) and not self._assign_devices(pod):
            return
        ip = self.processes.address(pod) if self.processes is not None else self._address()
        state = self.table.pods[namespace, name] = PodState(pod["metadata"]["uid"], ip)
        pod_status = pod.setdefault("status", {})
        pod_status.setdefault("startTime", metadata.now())
        pod_status["podIP"] = ip
        pod_status["podIPs"] = [{"ip": ip}]
        host = self.hosts.get(pod["spec"]["nodeName"], "")
        if host:
            pod_status["hostIP"] = host
            pod_status["hostIPs"] = [{"ip": host}]
        self.containers.begin(pod, state)

    def _assign_devices(self, pod: Object) -> bool:
        """Assign a pod its devices and CPUs, and unlock the node; a pod whose devices are in use fails."""
        name = pod["spec"]["nodeName"]
        node = self.cluster.node(name)
        if node is None:
            return False
        found = (self.cluster.pod(*key) for key in self._pods_of(name) if key in self.table.pods)
        others = [p for p in found if p is not None and (p.get("status") or {}).get("phase") not in _FINISHED]
        before = dict(node["metadata"].get("annotations") or {})
        reason, problem = "UnexpectedAdmissionError", devices.conflict(pod, node, others)
        if not problem:
            reason, problem = numa.REJECTED, numa.assign(pod, node, others)
        if problem:
            pod.setdefault("status", {}).update(phase="Failed", reason=reason, message=problem)
            self.cluster.set_pod_status(pod)
            self.cluster.event(pod, "Warning", reason, problem)
        devices.unlock(pod, node)
        if (node["metadata"].get("annotations") or {}) != before:
            self.cluster.set_node(node)
        return not problem

    def _address(self) -> str:
        self.addresses += 1
        number = self.addresses
        return f"10.{number // 65536 % 128}.{number // 256 % 256}.{number % 256}"

    def _end(self, key: tuple[str, str], pod: Object, state: PodState | None) -> None:
        """Stop a pod, unless its node has failed."""
        if pod["spec"].get("nodeName") in self.nodes:
            self.endings.stop(key, pod, state)
