"""The status that a kubelet reports for a pod: container states, conditions, addresses, phase."""

from __future__ import annotations

from typing import Any

from volcano_py.sandbox.apiserver import metadata

Object = dict[str, Any]


def image_id(image: str) -> str:
    return f"docker.io/library/{image}" if "/" not in image else image


def container_id(uid: str, name: str, attempt: int) -> str:
    """A made-up but stable id of a container's run."""
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
) -> Object:
    image = container.get("image", "")
    identity = container_id(uid, container["name"], restarts)
    return {
        "name": container["name"],
        "state": {
            "terminated": {
                "exitCode": code,
                "reason": "Completed" if code == 0 else "Error",
                "startedAt": started,
                "finishedAt": metadata.now(),
                "containerID": identity,
            }
        },
        "lastState": last or {},
        "ready": ready,
        "restartCount": restarts,
        "image": image,
        "imageID": image_id(image),
        "containerID": identity,
        "started": False,
    }


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
    """The conditions of a pod that the kubelet has taken on."""
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
