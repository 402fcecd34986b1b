"""The end of pods: deletion with its grace period, the deadline, and remaining sidecars.

Kubernetes: the kubelet's pod workers.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from volcano_py.sandbox.kubelet import resume, status
from volcano_py.sandbox.kubelet.behaviour import Run
from volcano_py.sandbox.kubelet.pod_table import PodState, PodTable

Object = dict[str, Any]

DEADLINE = "Pod was active on the node longer than the specified deadline"


class Endings:
    """Ends pods: hollow containers immediately, processes after their grace period."""

    def __init__(self, table: PodTable) -> None:
        self.table = table

    def stop(self, key: tuple[str, str], pod: Object, state: PodState | None) -> None:
        """Stop a pod: hollow containers immediately, processes after their grace period."""
        uid = pod["metadata"]["uid"]
        if state is not None:
            state.cancel()
            state.stopping = True
        if self.table.processes is None:
            self.table.cluster.remove_pod(*key, uid)
            return
        grace = pod["metadata"].get("deletionGracePeriodSeconds") or 0
        self.table.processes.stop(uid, grace, lambda ended: self.table.enqueue(self._stopped, *key, uid, ended))

    def _stopped(self, namespace: str, name: str, uid: str, ended: dict[str, Run]) -> None:
        """Handle the end of the last process of a terminating pod."""
        pod = self.table.cluster.pod(namespace, name)
        if pod is None or pod["metadata"]["uid"] != uid:
            return
        if ended:
            status.ends(pod, ended)
            self.table.cluster.set_pod_status(pod)
        self.table.cluster.remove_pod(namespace, name, uid)

    def stop_sidecars(self, pod: Object) -> None:
        """Stop the remaining containers of a finished pod."""
        if self.table.processes is not None and pod["spec"].get("initContainers"):
            meta = pod["metadata"]
            grace = pod["spec"].get("terminationGracePeriodSeconds", 30)
            where = (meta["namespace"], meta["name"], meta["uid"])
            self.table.processes.stop(
                meta["uid"], grace, lambda ended: self.table.enqueue(self._expired, *where, ended)
            )

    def limit_time(self, pod: Object, state: PodState) -> None:
        """End a pod that runs longer than its activeDeadlineSeconds."""
        seconds = pod["spec"].get("activeDeadlineSeconds")
        if seconds is not None:
            meta = pod["metadata"]
            left = seconds - resume.age(pod, datetime.now(UTC))
            self.table.later(state, DEADLINE, left, self._expire, meta["namespace"], meta["name"], state.uid)

    def _expire(self, namespace: str, name: str, uid: str) -> None:
        found = self.table.current(namespace, name, uid)
        if found is None:
            return
        pod, state = found
        state.cancel()
        pod["status"] |= {"phase": "Failed", "reason": "DeadlineExceeded", "message": DEADLINE}
        if self.table.processes is None:
            status.ends(pod, _killed(pod))
        status.conditions(pod["status"], state.initialized, False, "PodFailed")
        self.table.cluster.set_pod_status(pod)
        if self.table.processes is not None:
            grace = pod["spec"].get("terminationGracePeriodSeconds", 30)
            self.table.processes.stop(
                uid, grace, lambda ended: self.table.enqueue(self._expired, namespace, name, uid, ended)
            )

    def _expired(self, namespace: str, name: str, uid: str, ended: dict[str, Run]) -> None:
        """Handle the end of the processes of a finished pod."""
        pod = self.table.cluster.pod(namespace, name)
        if pod is not None and pod["metadata"]["uid"] == uid:
            status.ends(pod, _killed(pod) | ended)
            self.table.cluster.set_pod_status(pod)


def _killed(pod: Object) -> dict[str, Run]:
    """The terminated states of hollow containers that still run."""
    rows = [*(pod["status"].get("containerStatuses") or []), *(pod["status"].get("initContainerStatuses") or [])]
    return {row["name"]: Run(0.0, 137) for row in rows if "running" in row["state"]}
