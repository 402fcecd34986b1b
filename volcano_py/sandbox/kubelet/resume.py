"""The state of a pod before a restart of its kubelet, read from the pod's status."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, NamedTuple

Object = dict[str, Any]


class Resumed(NamedTuple):
    """A container from its status; `elapsed`: seconds since its start, 0 unless it runs."""

    container: Object
    running: bool
    over: bool  # it has ended and does not restart
    elapsed: float
    restarts: int


def began(pod: Object) -> bool:
    """Whether a kubelet had started this pod before."""
    status = pod.get("status") or {}
    return bool(status.get("podIP")) and bool(status.get("containerStatuses"))


def initialized(pod: Object) -> bool:
    """Whether its main containers were started."""
    rows = pod["status"].get("conditions") or []
    return any(row["type"] == "Initialized" and row["status"] == "True" for row in rows)


def init_index(pod: Object) -> int:
    """The init container that must be started (again)."""
    rows = {row["name"]: row for row in pod["status"].get("initContainerStatuses") or []}
    for index, container in enumerate(pod["spec"].get("initContainers") or []):
        state = (rows.get(container["name"]) or {}).get("state") or {}
        sidecar = container.get("restartPolicy") == "Always" and "running" in state
        if not sidecar and (state.get("terminated") or {}).get("exitCode") != 0:
            return index
    return len(pod["spec"].get("initContainers") or [])


def age(pod: Object, now: datetime) -> float:
    """Seconds since a kubelet started the pod."""
    started = (pod.get("status") or {}).get("startTime")
    return max((now - _time(started)).total_seconds(), 0.0) if started else 0.0


def containers(pod: Object, now: datetime) -> list[Resumed]:
    """The main containers."""
    rows = {row["name"]: row for row in pod["status"]["containerStatuses"]}
    policy = pod["spec"].get("restartPolicy", "Always")
    out = []
    for container in pod["spec"]["containers"]:
        row = rows.get(container["name"]) or {}
        state = row.get("state") or {}
        code = (state.get("terminated") or {}).get("exitCode")
        over = code is not None and (policy == "Never" or (policy == "OnFailure" and code == 0))
        started = (state.get("running") or {}).get("startedAt")
        elapsed = (now - _time(started)).total_seconds() if started else 0.0
        out.append(Resumed(container, bool(started), over, max(elapsed, 0.0), row.get("restartCount", 0)))
    return out


def _time(stamp: str) -> datetime:
    return datetime.strptime(stamp, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)


def address_number(address: str) -> int:
    """The number from which an address 10.x.y.z was derived; 0 for others."""
    parts = address.split(".")
    if len(parts) != 4 or parts[0] != "10" or not all(part.isdigit() for part in parts):
        return 0
    return int(parts[1]) * 65536 + int(parts[2]) * 256 + int(parts[3])
