"""All kubelets in one: a shared loop with timers moves every bound pod through its life.

Events are queued and handled a few at a time, so that a burst of bindings does not hold up the API server that
lives in the same process.
"""

from __future__ import annotations

import asyncio
import copy
import logging
from collections import deque
from datetime import UTC, datetime
from typing import Any

from volcano_py.sandbox.apiserver import metadata
from volcano_py.sandbox.apiserver.store import DELETED
from volcano_py.sandbox.kubelet import nodes, resume, status
from volcano_py.sandbox.kubelet.behaviour import Run, run_of
from volcano_py.sandbox.kubelet.clock import Clock, Timer
from volcano_py.sandbox.kubelet.ports import ClusterPort
from volcano_py.sandbox.kubelet.resume import address_number

LOG = logging.getLogger(__name__)
Object = dict[str, Any]

SLICE = 40  # queued items that are handled before others get their turn
LEASE_PERIOD = 10.0  # seconds between renewals of a node's Lease
BACKOFF_FIRST, BACKOFF_LIMIT = 10.0, 300.0  # seconds before a crashed container starts again
BACKOFF_RESET = 600.0  # a container that ran this long starts afresh


class _Pod:
    """What a kubelet remembers of a pod; the rest is in the pod's status."""

    __slots__ = ("backoff", "init_index", "initialized", "ip", "started", "stopping", "timers", "uid")

    def __init__(self, uid: str, ip: str) -> None:
        self.uid = uid
        self.ip = ip
        self.initialized = False
        self.init_index = 0
        self.stopping = False
        self.timers: dict[str, Timer] = {}
        self.backoff: dict[str, float] = {}
        self.started: dict[str, float] = {}

    def cancel(self) -> None:
        for timer in self.timers.values():
            timer.cancel()
        self.timers.clear()


class Kubelets:
    """Plays the kubelet of every node that does not say otherwise."""

    def __init__(
        self, cluster: ClusterPort, *, leases: bool = True, backoff: float = BACKOFF_FIRST, clock: Clock | None = None
    ) -> None:
        self.cluster = cluster
        self.clock = clock or Clock()
        self.leases = leases
        self.backoff = backoff
        self.nodes: dict[str, str] = {}  # name to uid
        self.hosts: dict[str, str] = {}  # name to the node's address
        self.pods: dict[tuple[str, str], _Pod] = {}
        self.queue: deque[tuple[Any, ...]] = deque()
        self.scheduled = False
        self.number = 0
        self.addresses = 0
        self.started = self.stopped = False
        self._lease_task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin with the nodes and pods that are there."""
        self.addresses = max(map(address_number, self.cluster.pod_addresses()), default=0)
        self.cluster.watch_nodes(lambda type_, entry: self._enqueue(self._node_event, type_, entry, self.started))
        self.cluster.watch_pods(lambda type_, entry: self._enqueue(self._pod_event, type_, entry), self._wants)
        self.started = True
        if self.leases:
            self._lease_task = asyncio.create_task(self._renew_leases())

    def stop(self) -> None:
        self.stopped = True
        self.queue.clear()
        if self._lease_task is not None:
            self._lease_task.cancel()
        for pod in self.pods.values():
            pod.cancel()
        self.clock.stop()

    def _wants(self, event: Any) -> bool:
        """Cheap test for pod events that a kubelet has to look at: new to it, dying, or gone."""
        entry = event.entry
        known = self.pods.get((entry.namespace, entry.name))
        if known is None or event.type == DELETED or known.uid != entry.uid:
            return True
        return not known.stopping and b'"deletionTimestamp":' in entry.tail

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
        """A node came (the pods on it are looked for when `adopt`), changed or went."""
        name = entry.name
        if type_ == DELETED:
            if self.nodes.get(name) == entry.uid:
                del self.nodes[name]
                self.hosts.pop(name, None)
                self._lose_node(name)
            return
        failed = nodes.has_failed(entry)
        if self.nodes.get(name) == entry.uid:
            if failed:
                self._fall_silent(name)
            return
        node = self.cluster.node(name)
        if failed or node is None or not nodes.is_hollow(node):
            return
        self.nodes[name] = node["metadata"]["uid"]
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

    def _adopt(self, name: str) -> None:
        """Pods that were bound before their node came."""
        for namespace, pod_name in self._pods_of(name):
            self._enqueue(self._begin, namespace, pod_name)

    def _fall_silent(self, name: str) -> None:
        """A node fails: nobody hears of it and its pods any more. When it is back they are taken on where they were."""
        del self.nodes[name]
        for key in self._pods_of(name):
            state = self.pods.pop(key, None)
            if state is not None:
                state.cancel()

    def _lose_node(self, name: str) -> None:
        """A node is gone, and its pods with it."""
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
        known = self.pods.get(key)
        if type_ == DELETED:
            if known is not None and known.uid == entry.uid:
                known.cancel()
                del self.pods[key]
                self.cluster.forget_logs(entry.uid)
            return
        if known is not None and known.uid != entry.uid:
            known.cancel()
            del self.pods[key]
            known = None
        if b'"deletionTimestamp":' in entry.tail:
            pod = self.cluster.pod(*key)
            if pod is not None and pod["metadata"].get("deletionTimestamp"):
                self._stop(key, pod, known)
                return
        if known is None:
            self._begin(*key)

    def _begin(self, namespace: str, name: str) -> None:
        pod = self.cluster.pod(namespace, name)
        if pod is None or (namespace, name) in self.pods:
            return
        if pod["spec"].get("nodeName") not in self.nodes:
            return
        if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
            return
        if pod["metadata"].get("deletionTimestamp"):
            self._stop((namespace, name), pod, None)
            return
        if resume.began(pod):
            self._resume(pod)
            return
        self.addresses += 1
        number = self.addresses
        ip = f"10.{number // 65536 % 128}.{number // 256 % 256}.{number % 256}"
        state = self.pods[namespace, name] = _Pod(pod["metadata"]["uid"], ip)
        pod_status = pod.setdefault("status", {})
        pod_status.setdefault("startTime", metadata.now())
        pod_status["podIP"] = ip
        pod_status["podIPs"] = [{"ip": ip}]
        host = self.hosts.get(pod["spec"]["nodeName"], "")
        if host:
            pod_status["hostIP"] = host
            pod_status["hostIPs"] = [{"ip": host}]
        if pod["spec"].get("initContainers"):
            pod_status["containerStatuses"] = [
                status.waiting(container, "PodInitializing") for container in pod["spec"]["containers"]
            ]
            self._run_init(pod, state)
        else:
            self._run_main(pod, state)

    def _resume(self, pod: Object) -> None:
        """Go on with a pod that was begun before this kubelet came (back)."""
        meta = pod["metadata"]
        where = (meta["namespace"], meta["name"], meta["uid"])
        state = self.pods[where[:2]] = _Pod(meta["uid"], pod["status"]["podIP"])
        if not resume.initialized(pod):
            state.init_index = resume.init_index(pod)
            self._run_init(pod, state)
            return
        state.initialized = True
        for found in resume.containers(pod, datetime.now(UTC)):
            name = found.container["name"]
            elapsed = found.elapsed * self.clock.speed
            state.started[name] = self.clock.now() - elapsed
            if found.restarts:
                state.backoff[name] = min(self.backoff * 2 ** min(found.restarts, 16), BACKOFF_LIMIT)
            if found.running:
                self._plan_end(pod, state, found.container, elapsed)
            elif not found.over:
                self._later(state, name, self._next_backoff(state, name), self._restart, *where, name)
        before = copy.deepcopy(pod["status"])
        self._settle(pod, pod["status"]["containerStatuses"])
        if pod["status"] != before:  # somebody had given it up
            self.cluster.set_pod_status(pod)

    def _later(self, state: _Pod, name: str, seconds: float, function: Any, *arguments: Any) -> None:
        state.timers[name] = self.clock.call_later(seconds, self._enqueue, function, *arguments)

    def _current(self, namespace: str, name: str, uid: str) -> tuple[Object, _Pod] | None:
        """The pod and what is remembered of it, unless it has gone or is going."""
        state = self.pods.get((namespace, name))
        if state is None or state.uid != uid or state.stopping:
            return None
        pod = self.cluster.pod(namespace, name)
        if pod is None or pod["metadata"]["uid"] != uid or pod["status"].get("phase") in ("Succeeded", "Failed"):
            return None
        return pod, state

    # --- init containers ---------------------------------------------------------------------------------------------

    def _run_init(self, pod: Object, state: _Pod) -> None:
        """Start the next init container; sidecars stay running while the next one starts."""
        inits = pod["spec"]["initContainers"]
        stamp = metadata.now()
        rows = list(pod["status"].get("initContainerStatuses") or [])
        if not rows:
            rows = [status.waiting(container, "PodInitializing") for container in inits]
        while state.init_index < len(inits):
            container = inits[state.init_index]
            rows[state.init_index] = status.running(state.uid, container, stamp, rows[state.init_index]["restartCount"])
            if container.get("restartPolicy") != "Always":
                rows[state.init_index]["ready"] = False
                break
            state.init_index += 1
        pod["status"]["initContainerStatuses"] = rows
        if state.init_index >= len(inits):
            self._run_main(pod, state)
            return
        pod["status"]["phase"] = "Pending"
        status.conditions(pod["status"], False, False)
        self.cluster.set_pod_status(pod)
        container = inits[state.init_index]
        run = run_of(pod, container, init=True)
        self._plan_output(pod, state, container, run)
        meta = pod["metadata"]
        self._later(
            state,
            container["name"],
            run.seconds or 0.0,
            self._end_init,
            meta["namespace"],
            meta["name"],
            state.uid,
            run,
        )

    def _end_init(self, namespace: str, name: str, uid: str, run: Run) -> None:
        found = self._current(namespace, name, uid)
        if found is None:
            return
        pod, state = found
        container = pod["spec"]["initContainers"][state.init_index]
        rows = pod["status"]["initContainerStatuses"]
        row = rows[state.init_index]
        started = (row["state"].get("running") or {}).get("startedAt", metadata.now())
        rows[state.init_index] = status.terminated(
            uid, container, started, run.exit_code, row["restartCount"], ready=run.exit_code == 0
        )
        if run.exit_code == 0:
            state.init_index += 1
            self._run_init(pod, state)
            return
        if pod["spec"].get("restartPolicy") == "Never":
            pod["status"]["phase"] = "Failed"
            status.conditions(pod["status"], False, False)
            self.cluster.set_pod_status(pod)
            return
        delay = self._next_backoff(state, container["name"])
        last = rows[state.init_index]["state"]
        rows[state.init_index] = status.waiting(
            container,
            "CrashLoopBackOff",
            row["restartCount"] + 1,
            last,
            f"back-off {delay:g}s restarting failed container",
        )
        self.cluster.set_pod_status(pod)
        self._later(state, container["name"], delay, self._retry_init, namespace, name, uid)

    def _retry_init(self, namespace: str, name: str, uid: str) -> None:
        found = self._current(namespace, name, uid)
        if found is not None:
            self._run_init(*found)

    # --- main containers ---------------------------------------------------------------------------------------------

    def _run_main(self, pod: Object, state: _Pod) -> None:
        """Start all containers; the pod is Running."""
        state.initialized = True
        stamp = metadata.now()
        now = self.clock.now()
        containers = pod["spec"]["containers"]
        pod["status"]["containerStatuses"] = [status.running(state.uid, c, stamp) for c in containers]
        pod["status"]["phase"] = "Running"
        status.conditions(pod["status"], True, True)
        self.cluster.set_pod_status(pod)
        for container in containers:
            state.started[container["name"]] = now
            self._plan_end(pod, state, container)

    def _plan_end(self, pod: Object, state: _Pod, container: Object, elapsed: float = 0.0) -> None:
        run = run_of(pod, container)
        if elapsed:
            rest = tuple((seconds - elapsed, line) for seconds, line in run.output if seconds > elapsed)
            run = Run(None if run.seconds is None else max(run.seconds - elapsed, 0.0), run.exit_code, rest)
        meta = pod["metadata"]
        self._plan_output(pod, state, container, run)
        if run.seconds is None:
            return
        where = (meta["namespace"], meta["name"], state.uid, container["name"], run)
        self._later(state, container["name"], run.seconds, self._end, *where)

    def _end(self, namespace: str, name: str, uid: str, container_name: str, run: Run) -> None:
        """A container's run is over."""
        found = self._current(namespace, name, uid)
        if found is None:
            return
        pod, state = found
        containers = {c["name"]: c for c in pod["spec"]["containers"]}
        container = containers.get(container_name)
        if container is None:
            return
        rows = pod["status"].get("containerStatuses") or []
        index = next((i for i, row in enumerate(rows) if row["name"] == container_name), None)
        if index is None:
            return
        row = rows[index]
        started = (row["state"].get("running") or {}).get("startedAt", metadata.now())
        restarts = row["restartCount"]
        ended = status.terminated(uid, container, started, run.exit_code, restarts, row.get("lastState"))
        policy = pod["spec"].get("restartPolicy", "Always")
        again = policy == "Always" or (policy == "OnFailure" and run.exit_code != 0)
        if again:
            ran = self.clock.now() - state.started.get(container_name, 0.0)
            if container_name in state.backoff and ran <= BACKOFF_RESET:
                delay = self._next_backoff(state, container_name)
                text = f"back-off {delay:g}s restarting failed container={container_name} pod={name}"
                rows[index] = status.waiting(container, "CrashLoopBackOff", restarts, ended["state"], text)
            else:
                # the first time there is no waiting, only what it takes a kubelet to see it
                state.backoff[container_name] = self.backoff
                delay = self.backoff / 10
                rows[index] = ended
            self._later(state, container_name, delay, self._restart, namespace, name, uid, container_name)
        else:
            rows[index] = ended
        pod["status"]["containerStatuses"] = rows
        self._settle(pod, rows)
        self.cluster.set_pod_status(pod)

    def _settle(self, pod: Object, rows: list[Object]) -> None:
        """Phase and conditions from the states of the containers."""
        codes = [(row["state"].get("terminated") or {}).get("exitCode") for row in rows]
        policy = pod["spec"].get("restartPolicy", "Always")
        over = policy == "Never" or (policy == "OnFailure" and not any(codes))
        if over and all(code is not None for code in codes):
            succeeded = not any(codes)
            pod["status"]["phase"] = "Succeeded" if succeeded else "Failed"
            status.conditions(pod["status"], True, False, "PodCompleted" if succeeded else "PodFailed")
        else:
            pod["status"]["phase"] = "Running"
            status.conditions(pod["status"], True, all(row["ready"] for row in rows))

    def _restart(self, namespace: str, name: str, uid: str, container_name: str) -> None:
        found = self._current(namespace, name, uid)
        if found is None:
            return
        pod, state = found
        rows = pod["status"].get("containerStatuses") or []
        for index, container in enumerate(pod["spec"]["containers"]):
            if container["name"] != container_name or index >= len(rows):
                continue
            row = rows[index]
            last = row["state"] if "terminated" in row["state"] else row.get("lastState")
            rows[index] = status.running(uid, container, metadata.now(), row["restartCount"] + 1, last)
            state.started[container_name] = self.clock.now()
            self._settle(pod, rows)
            self.cluster.set_pod_status(pod)
            self._plan_end(pod, state, container)

    def _next_backoff(self, state: _Pod, name: str) -> float:
        """Seconds before the next start: twice as many each time."""
        delay = state.backoff.get(name, self.backoff)
        state.backoff[name] = min(delay * 2, BACKOFF_LIMIT)
        return delay

    def _plan_output(self, pod: Object, state: _Pod, container: Object, run: Run) -> None:
        """Print what comes at once, and set timers for the rest."""
        for index, (seconds, line) in enumerate(run.output):
            if not seconds:
                self.cluster.append_log(state.uid, container["name"], line)
            else:
                name = f"{container['name']}/{index}"
                self._later(state, name, seconds, self._print, pod["metadata"], state.uid, container["name"], line)

    def _print(self, meta: Object, uid: str, container_name: str, line: str) -> None:
        state = self.pods.get((meta["namespace"], meta["name"]))
        if state is not None and state.uid == uid:
            self.cluster.append_log(uid, container_name, line)

    # --- the end -----------------------------------------------------------------------------------------------------

    def _stop(self, key: tuple[str, str], pod: Object, state: _Pod | None) -> None:
        """A pod is to go: its containers stop at once, as the hollow ones have nothing to tidy up."""
        if pod["spec"].get("nodeName") not in self.nodes:
            return
        if state is not None:
            state.cancel()
            state.stopping = True
        self.cluster.remove_pod(*key, pod["metadata"]["uid"])
