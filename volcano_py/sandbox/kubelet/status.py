"""The status that a kubelet reports for a pod: container states, conditions, addresses, phase."""

from __future__ import annotations

from typing import Any

from volcano_py.sandbox.apiserver.apimachinery import metadata
from volcano_py.sandbox.kubelet.behaviour import Run

Object = dict[str, Any]


def image_id(image: str) -> str:
    return f"docker.io/library/{image}" if "/" not in image else image


def container_id(uid: str, name: str, attempt: int) -> str:
    """A stable ID of a container's run, without a container runtime."""
    return f"hollow://{uid.replace('-', '')}{abs(hash((name, attempt))) % 16**8:08x}"


def waiting(container: Object, reason: str, restarts: int = 0, last: Object | None = None, message: str = "") -> Object:
    state: Object = {"reason": reason}
    if message:
        state["message"] = message
    return {
        "name": container["name"],
        "state": {"waiting": state},
        "lastState": last or {},
        "ready": False,
        "restartCount": restarts,
        "image": container.get("image", ""),
        "imageID": "",
        "started": False,
    }


def running(uid: str, container: Object, started: str, restarts: int = 0, last: Object | None = None) -> Object:
    image = container.get("image", "")
    return {
        "name": container["name"],
        "state": {"running": {"startedAt": started}},
        "lastState": last or {},
        "ready": True,
        "restartCount": restarts,
        "image": image,
        "imageID": image_id(image),
        "containerID": container_id(uid, container["name"], restarts),
        "started": True,
    }


def terminated(
    uid: str,
    container: Object,
    started: str,
    code: int,
    restarts: int = 0,
    last: Object | None = None,
    ready: bool = False,
    reason: str = "",
    message: str = "",
) -> Object:
    image = container.get("image", "")
    identity = container_id(uid, container["name"], restarts)
    ended = {
        "exitCode": code,
        "reason": reason or ("Completed" if code == 0 else "Error"),
        "startedAt": started,
        "finishedAt": metadata.now(),
        "containerID": identity,
    }
    if message:
        ended["message"] = message
    return {
        "name": container["name"],
        "state": {"terminated": ended},
        "lastState": last or {},
        "ready": ready,
        "restartCount": restarts,
        "image": image,
        "imageID": image_id(image),
        "containerID": identity,
        "started": False,
    }


def find(pod: Object, name: str) -> tuple[Object, list[Object], int] | None:
    """A container by its name: its spec, the list with its status, and the index of the status."""
    for kind, rows_kind in (("containers", "containerStatuses"), ("initContainers", "initContainerStatuses")):
        rows = pod["status"].get(rows_kind) or []
        for container in pod["spec"].get(kind) or []:
            if container["name"] == name:
                index = next((i for i, row in enumerate(rows) if row["name"] == name), None)
                return (container, rows, index) if index is not None else None
    return None


def ends(pod: Object, ended: dict[str, Run]) -> None:
    """Write into a pod's status how its containers ended."""
    for name, run in ended.items():
        place = find(pod, name)
        if place is None:
            continue
        container, rows, index = place
        row = rows[index]
        started = (row["state"].get("running") or {}).get("startedAt", metadata.now())
        rows[index] = terminated(
            pod["metadata"]["uid"],
            container,
            started,
            run.exit_code,
            row["restartCount"],
            row.get("lastState"),
            reason=run.reason,
            message=run.message,
        )


def never_started(row: Object) -> bool:
    """Whether a container waits for an object that it refers to, and has not run yet."""
    waits = row["state"].get("waiting") or {}
    return waits.get("reason") in ("CreateContainerConfigError", "CreateContainerError") and not row.get("lastState")


def set_conditions(status: Object, values: dict[str, tuple[bool, str]]) -> None:
    """Set conditions (True or False with a reason); the time changes only when the value does."""
    rows = list(status.get("conditions") or [])
    stamp = metadata.now()
    for type_, (value, reason) in values.items():
        text = "True" if value else "False"
        row: Object = {"type": type_, "status": text, "lastProbeTime": None, "lastTransitionTime": stamp}
        if reason:
            row["reason"] = reason
        for index, current in enumerate(rows):
            if current["type"] == type_:
                if current["status"] == text:
                    row["lastTransitionTime"] = current.get("lastTransitionTime") or stamp
                rows[index] = row
                break
        else:
            rows.append(row)
    status["conditions"] = rows


def conditions(status: Object, initialized: bool, ready: bool, reason: str = "") -> None:
    """The conditions of a pod that the kubelet has started."""
    why = "" if ready else reason or "ContainersNotReady"
    set_conditions(
        status,
        {
            "PodReadyToStartContainers": (True, ""),
            "Initialized": (initialized, "" if initialized else "ContainersNotInitialized"),
            "Ready": (ready, why),
            "ContainersReady": (ready, why),
            "PodScheduled": (True, ""),
        },
    )
    if reason == "PodCompleted":
        for row in status["conditions"]:
            if row["type"] == "Initialized":
                row["reason"] = reason
