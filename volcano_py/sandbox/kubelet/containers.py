"""Containers of pods: init containers in order, then the main ones; their ends and restarts.

Kubernetes: the kubelet's runtime manager.
"""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

from volcano_py.sandbox.apiserver.apimachinery import metadata
from volcano_py.sandbox.kubelet import claims, resume, status
from volcano_py.sandbox.kubelet.behaviour import Run, run_of
from volcano_py.sandbox.kubelet.endings import Endings
from volcano_py.sandbox.kubelet.pod_table import PodState, PodTable
from volcano_py.sandbox.kubelet.processes.problem import NotReady
from volcano_py.sandbox.kubelet.processes.runtime import LOST

Object = dict[str, Any]

BACKOFF_FIRST, BACKOFF_LIMIT = 10.0, 300.0  # seconds before a crashed container restarts
BACKOFF_RESET = 600.0  # the back-off is reset after a run of this duration
FIRST_RETRY, RETRY = 0.1, 1.0  # seconds before a missing volume or reference is checked again
NO_COMMAND = "has no command, and the command of its image is unknown: it is simulated until the pod is deleted"


class Containers:
    """Starts and ends the containers of every pod; `backoff`: seconds before the first restart."""

    def __init__(self, table: PodTable, endings: Endings, backoff: float) -> None:
        self.table = table
        self.endings = endings
        self.backoff = backoff

    def begin(self, pod: Object, state: PodState) -> None:
        """Start a pod that has its address."""
        self.endings.limit_time(pod, state)
        if self._set_up(pod, state):
            self._run_first(pod, state)

    def _set_up(self, pod: Object, state: PodState) -> bool:
        """Wait for the claims of a pod, and create the folders of a pod with processes; False: retry later."""
        try:
            problem = claims.problem_of(self.table.cluster, pod)
            if problem is not None:
                raise problem
            if self.table.processes is not None:
                self.table.processes.set_up(pod)
        except NotReady as problem:
            meta, pod_status = pod["metadata"], pod["status"]
            rows = [status.waiting(container, problem.reason) for container in pod["spec"]["containers"]]
            if rows != pod_status.get("containerStatuses"):
                pod_status["containerStatuses"] = rows
                status.conditions(pod_status, False, False)
                self.table.cluster.set_pod_status(pod)
            retry = RETRY if state.set_ups else FIRST_RETRY
            state.set_ups += 1
            if retry == RETRY:
                self.table.cluster.event(pod, "Warning", problem.event, str(problem))
            self.table.later(state, "", retry, self._set_up_again, meta["namespace"], meta["name"], state.uid)
            return False
        return True

    def _set_up_again(self, namespace: str, name: str, uid: str) -> None:
        found = self.table.current(namespace, name, uid)
        if found is not None and self._set_up(*found):
            self._run_first(*found)

    def _run_first(self, pod: Object, state: PodState) -> None:
        """Begin with the init containers, if there are any."""
        if pod["spec"].get("initContainers"):
            pod_status = pod["status"]
            pod_status["containerStatuses"] = [
                status.waiting(container, "PodInitializing") for container in pod["spec"]["containers"]
            ]
            self._run_init(pod, state)
        else:
            self._run_main(pod, state)

    def resume(self, pod: Object) -> None:
        """Continue a pod that an earlier kubelet has started."""
        meta = pod["metadata"]
        where = (meta["namespace"], meta["name"], meta["uid"])
        state = self.table.pods[where[:2]] = PodState(meta["uid"], pod["status"]["podIP"])
        self.endings.limit_time(pod, state)
        if self.table.processes is not None:
            self.table.processes.adopt(pod)
        if not resume.initialized(pod):
            if self._set_up(pod, state):
                state.init_index = resume.init_index(pod) if self.table.processes is None else 0
                self._run_first(pod, state)
            return
        state.initialized = True
        for found in resume.containers(pod, datetime.now(UTC)):
            name = found.container["name"]
            elapsed = found.elapsed * self.table.clock.speed
            state.started[name] = self.table.clock.now() - elapsed
            if found.restarts:
                state.backoff[name] = min(self.backoff * 2 ** min(found.restarts, 16), BACKOFF_LIMIT)
            if found.running and self.table.processes is not None and self.table.processes.runs(pod, found.container):
                self.table.enqueue(self._end, *where, name, LOST)
            elif found.running:
                self._plan_end(pod, state, found.container, elapsed)
            elif not found.over:
                self.table.later(state, name, self._next_backoff(state, name), self._restart, *where, name)
        before = copy.deepcopy(pod["status"])
        self._settle(pod, pod["status"]["containerStatuses"])
        if pod["status"] != before:  # a controller had set it to failed
            self.table.cluster.set_pod_status(pod)

    def report(self, namespace: str, name: str) -> None:
        """Write a pod's phase and conditions again if the node controller has changed them."""
        state = self.table.pods.get((namespace, name))
        found = self.table.current(namespace, name, state.uid) if state is not None else None
        if found is None or not found[1].initialized:
            return
        pod = found[0]
        before = copy.deepcopy(pod["status"])
        self._settle(pod, pod["status"]["containerStatuses"])
        if pod["status"] != before:
            self.table.cluster.set_pod_status(pod)

    # --- init containers ---------------------------------------------------------------------------------------------

    def _run_init(self, pod: Object, state: PodState) -> None:
        """Start the next init container; sidecars continue to run."""
        inits = pod["spec"]["initContainers"]
        stamp = metadata.now()
        rows = list(pod["status"].get("initContainerStatuses") or [])
        if not rows:
            rows = [status.waiting(container, "PodInitializing") for container in inits]
        while state.init_index < len(inits):
            container = inits[state.init_index]
            row = rows[state.init_index]
            rows[state.init_index] = status.running(state.uid, container, stamp, row["restartCount"])
            if container.get("restartPolicy") != "Always":
                rows[state.init_index]["ready"] = False
                break
            if self.table.processes is not None:
                rows[state.init_index] = self._launch(pod, state, container, row["restartCount"], row["lastState"])
            state.init_index += 1
        pod["status"]["initContainerStatuses"] = rows
        if state.init_index >= len(inits):
            self._run_main(pod, state)
            return
        pod["status"]["phase"] = "Pending"
        status.conditions(pod["status"], False, False)
        container = inits[state.init_index]
        if self.table.processes is not None and self.table.processes.runs(pod, container):
            try:
                self.table.processes.launch(pod, container, self._report(pod, self._end_init))
            except NotReady as problem:
                row = rows[state.init_index]
                rows[state.init_index] = status.waiting(
                    container, problem.reason, row["restartCount"], row["lastState"], str(problem)
                )
                self._try_again(pod, state, container, problem, self._retry_init)
            self.table.cluster.set_pod_status(pod)
            return
        self.table.cluster.set_pod_status(pod)
        run = run_of(pod, container, init=True)
        self._plan_output(pod, state, container, run)
        meta = pod["metadata"]
        self.table.later(
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
        found = self.table.current(namespace, name, uid)
        if found is None:
            return
        pod, state = found
        container = pod["spec"]["initContainers"][state.init_index]
        rows = pod["status"]["initContainerStatuses"]
        row = rows[state.init_index]
        started = (row["state"].get("running") or {}).get("startedAt", metadata.now())
        rows[state.init_index] = status.terminated(
            uid,
            container,
            started,
            run.exit_code,
            row["restartCount"],
            ready=run.exit_code == 0,
            reason=run.reason,
            message=run.message,
        )
        if run.exit_code == 0:
            state.init_index += 1
            self._run_init(pod, state)
            return
        if pod["spec"].get("restartPolicy") == "Never":
            pod["status"]["phase"] = "Failed"
            status.conditions(pod["status"], False, False)
            self.endings.stop_sidecars(pod)
            self.table.cluster.set_pod_status(pod)
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
        self.table.cluster.set_pod_status(pod)
        self.table.later(state, container["name"], delay, self._retry_init, namespace, name, uid)

    def _retry_init(self, namespace: str, name: str, uid: str) -> None:
        found = self.table.current(namespace, name, uid)
        if found is not None:
            self._run_init(*found)

    # --- main containers ---------------------------------------------------------------------------------------------

    def _run_main(self, pod: Object, state: PodState) -> None:
        """Start all containers; the pod is Running."""
        state.initialized = True
        rows = [self._launch(pod, state, container) for container in pod["spec"]["containers"]]
        pod["status"]["containerStatuses"] = rows
        pod["status"]["phase"] = "Running"
        self._settle(pod, rows)
        self.table.cluster.set_pod_status(pod)

    def _launch(
        self, pod: Object, state: PodState, container: Object, restarts: int = 0, last: Object | None = None
    ) -> Object:
        """Start a container, or schedule a retry; returns its status."""
        name = container["name"]
        state.started[name] = self.table.clock.now()
        if self.table.processes is None:
            self._plan_end(pod, state, container)
        elif not self.table.processes.runs(pod, container):
            if container.get("restartPolicy") != "Always":
                self._plan_end(pod, state, container)
            if not container.get("command"):
                self.table.cluster.event(pod, "Normal", "Hollow", f"Container {name} {NO_COMMAND}")
        else:
            try:
                self.table.processes.launch(pod, container, self._report(pod, self._end, name))
            except NotReady as problem:
                self._try_again(pod, state, container, problem, self._restart, name)
                return status.waiting(container, problem.reason, restarts, last, str(problem))
        return status.running(state.uid, container, metadata.now(), restarts, last)

    def _report(self, pod: Object, function: Any, *arguments: Any) -> Any:
        """The callback for the Run of an ended process of this pod."""
        meta = pod["metadata"]
        where = (meta["namespace"], meta["name"], meta["uid"])
        return lambda run: self.table.enqueue(function, *where, *arguments, run)

    def _try_again(
        self, pod: Object, state: PodState, container: Object, problem: NotReady, function: Any, *arguments: Any
    ) -> None:
        meta = pod["metadata"]
        self.table.cluster.event(pod, "Warning", problem.event, f"Error: {problem}")
        self.table.later(
            state, container["name"], RETRY, function, meta["namespace"], meta["name"], meta["uid"], *arguments
        )

    def _plan_end(self, pod: Object, state: PodState, container: Object, elapsed: float = 0.0) -> None:
        run = run_of(pod, container)
        if elapsed:
            rest = tuple((seconds - elapsed, line) for seconds, line in run.output if seconds > elapsed)
            run = Run(None if run.seconds is None else max(run.seconds - elapsed, 0.0), run.exit_code, rest)
        meta = pod["metadata"]
        self._plan_output(pod, state, container, run)
        if run.seconds is None:
            return
        where = (meta["namespace"], meta["name"], state.uid, container["name"], run)
        self.table.later(state, container["name"], run.seconds, self._end, *where)

    def _place(
        self, namespace: str, name: str, uid: str, container_name: str
    ) -> tuple[Object, PodState, Object, list[Object], int] | None:
        """An existing container: its pod, the pod's state, itself, its status rows and the index of its own."""
        found = self.table.current(namespace, name, uid)
        place = None if found is None else status.find(found[0], container_name)
        return None if found is None or place is None else (*found, *place)

    def _end(self, namespace: str, name: str, uid: str, container_name: str, run: Run) -> None:
        """Handle the end of a container's run."""
        found = self._place(namespace, name, uid, container_name)
        if found is None:
            return
        pod, state, container, rows, index = found
        row = rows[index]
        started = (row["state"].get("running") or {}).get("startedAt", metadata.now())
        restarts = row["restartCount"]
        last = row.get("lastState")
        ended = status.terminated(
            uid, container, started, run.exit_code, restarts, last, reason=run.reason, message=run.message
        )
        policy = container.get("restartPolicy") or pod["spec"].get("restartPolicy", "Always")
        again = policy == "Always" or (policy == "OnFailure" and run.exit_code != 0)
        if again:
            ran = self.table.clock.now() - state.started.get(container_name, 0.0)
            if container_name in state.backoff and ran <= BACKOFF_RESET:
                delay = self._next_backoff(state, container_name)
                text = f"back-off {delay:g}s restarting failed container={container_name} pod={name}"
                rows[index] = status.waiting(container, "CrashLoopBackOff", restarts, ended["state"], text)
            else:
                # the first restart has no back-off, only the delay until a kubelet observes the end
                state.backoff[container_name] = self.backoff
                delay = self.backoff / 10
                rows[index] = ended
            self.table.later(state, container_name, delay, self._restart, namespace, name, uid, container_name)
        else:
            rows[index] = ended
        if state.initialized:
            self._settle(pod, pod["status"]["containerStatuses"])
        self.table.cluster.set_pod_status(pod)

    def _settle(self, pod: Object, rows: list[Object]) -> None:
        """Phase and conditions from the states of the containers."""
        codes = [(row["state"].get("terminated") or {}).get("exitCode") for row in rows]
        policy = pod["spec"].get("restartPolicy", "Always")
        over = policy == "Never" or (policy == "OnFailure" and not any(codes))
        if over and all(code is not None for code in codes):
            succeeded = not any(codes)
            pod["status"]["phase"] = "Succeeded" if succeeded else "Failed"
            status.conditions(pod["status"], True, False, "PodCompleted" if succeeded else "PodFailed")
            self.endings.stop_sidecars(pod)
        else:
            waiting = any(status.never_started(row) for row in rows)
            pod["status"]["phase"] = "Pending" if waiting else "Running"
            status.conditions(pod["status"], True, all(row["ready"] for row in rows))

    def _restart(self, namespace: str, name: str, uid: str, container_name: str) -> None:
        found = self._place(namespace, name, uid, container_name)
        if found is None:
            return
        pod, state, container, rows, index = found
        row = rows[index]
        last = row["state"] if "terminated" in row["state"] else row.get("lastState")
        # a waiting container that has not run yet is not a restart
        restarts = row["restartCount"] if status.never_started(row) else row["restartCount"] + 1
        rows[index] = self._launch(pod, state, container, restarts, last)
        if state.initialized:
            self._settle(pod, pod["status"]["containerStatuses"])
        self.table.cluster.set_pod_status(pod)

    def _next_backoff(self, state: PodState, name: str) -> float:
        """Seconds before the next restart: doubles each time."""
        delay = state.backoff.get(name, self.backoff)
        state.backoff[name] = min(delay * 2, BACKOFF_LIMIT)
        return delay

    def _plan_output(self, pod: Object, state: PodState, container: Object, run: Run) -> None:
        """Print the immediate output, and set timers for the rest."""
        for index, (seconds, line) in enumerate(run.output):
            if not seconds:
                self.table.cluster.append_log(state.uid, container["name"], line)
            else:
                name = f"{container['name']}/{index}"
                self.table.later(state, name, seconds, self._print, pod["metadata"], state.uid, container["name"], line)

    def _print(self, meta: Object, uid: str, container_name: str, line: str) -> None:
        state = self.table.pods.get((meta["namespace"], meta["name"]))
        if state is not None and state.uid == uid:
            self.table.cluster.append_log(uid, container_name, line)
