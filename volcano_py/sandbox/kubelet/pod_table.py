"""The state of the pods on the nodes, and the callbacks that change it. Kubernetes: the kubelet's pod manager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from volcano_py.sandbox.kubelet.clock import Clock, Timer
from volcano_py.sandbox.kubelet.ports import ClusterPort
from volcano_py.sandbox.kubelet.processes.runtime import Processes

Object = dict[str, Any]


class PodState:
    """A kubelet's state of a pod; the rest is in the pod's status."""

    __slots__ = ("backoff", "init_index", "initialized", "ip", "set_ups", "started", "stopping", "timers", "uid")

    def __init__(self, uid: str, ip: str) -> None:
        self.uid = uid
        self.ip = ip
        self.initialized = False
        self.init_index = 0
        self.stopping = False
        self.set_ups = 0  # attempts that found something missing
        self.timers: dict[str, Timer] = {}
        self.backoff: dict[str, float] = {}
        self.started: dict[str, float] = {}

    def cancel(self) -> None:
        for timer in self.timers.values():
            timer.cancel()
        self.timers.clear()


class PodTable:
    """The pods, their cluster, their clock, and their processes (None: all pods are hollow)."""

    def __init__(
        self, cluster: ClusterPort, clock: Clock, processes: Processes | None, enqueue: Callable[..., None]
    ) -> None:
        self.cluster = cluster
        self.clock = clock
        self.processes = processes
        self.enqueue = enqueue  # call a function later, in the order of the queue
        self.pods: dict[tuple[str, str], PodState] = {}

    def later(self, state: PodState, name: str, seconds: float, function: Any, *arguments: Any) -> None:
        state.timers[name] = self.clock.call_later(seconds, self.enqueue, function, *arguments)

    def current(self, namespace: str, name: str, uid: str) -> tuple[Object, PodState] | None:
        """The pod and its state, unless it is deleted or terminates."""
        state = self.pods.get((namespace, name))
        if state is None or state.uid != uid or state.stopping:
            return None
        pod = self.cluster.pod(namespace, name)
        if pod is None or pod["metadata"]["uid"] != uid or pod["status"].get("phase") in ("Succeeded", "Failed"):
            return None
        return pod, state

    def drop(self, state: PodState) -> None:
        """Remove a pod; its processes end."""
        state.cancel()
        if self.processes is not None:
            self.processes.kill(state.uid)
