"""The status of a Deployment: counts, and whether it is available and progresses.

Kubernetes: the deployment controller's progress.go and its conditions.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from volcano_py.sandbox.apiserver.schema.codec import parse_time
from volcano_py.sandbox.controllers.apps.deployment_rollout import available, max_unavailable, size

Object = dict[str, Any]

NO_DEADLINE = 2**31 - 1


def status_of(deployment: Object, new: Object | None, olds: list[Object], now: float) -> Object:
    """The status, including its conditions."""
    old: Object = deployment.get("status") or {}
    sets = [*olds, *([new] if new is not None else [])]
    counts = {
        "replicas": _total(sets, "replicas"),
        "updatedReplicas": _total([new] if new is not None else [], "replicas"),
        "readyReplicas": _total(sets, "readyReplicas"),
        "availableReplicas": _total(sets, "availableReplicas"),
        "unavailableReplicas": max(sum(map(size, sets)) - sum(map(available, sets)), 0),
    }
    status: Object = {key: value for key, value in counts.items() if value}
    status["observedGeneration"] = deployment["metadata"].get("generation", 0)
    status["terminatingReplicas"] = _total(sets, "terminatingReplicas")
    if "collisionCount" in old:
        status["collisionCount"] = old["collisionCount"]
    rows = list(old.get("conditions") or [])
    rows = _available(deployment, rows, counts["availableReplicas"], now)
    rows = _progressing(deployment, rows, counts, new, now)
    status["conditions"] = _failing(rows, sets, now)
    return status


def seconds_to_deadline(deployment: Object, status: Object, now: float) -> float | None:
    """Seconds until the next check of progressDeadlineSeconds; None when it does not apply."""
    limit = deployment["spec"].get("progressDeadlineSeconds", NO_DEADLINE)
    row = condition(status.get("conditions") or [], "Progressing")
    if limit == NO_DEADLINE or row is None or deployment["spec"].get("paused"):
        return None
    if row["reason"] in ("NewReplicaSetAvailable", "ProgressDeadlineExceeded"):
        return None
    ends: float = parse_time(row["lastUpdateTime"]).timestamp() + limit + 1
    return max(ends - now, 0.0)


def is_complete(deployment: Object, counts: Object) -> bool:
    """Whether every pod is of the newest template and available."""
    wanted = size(deployment)
    return all(counts.get(key, 0) == wanted for key in ("replicas", "updatedReplicas", "availableReplicas"))


def _progressing(
    deployment: Object, rows: list[Object], counts: Object, new: Object | None, now: float
) -> list[Object]:
    if deployment["spec"].get("progressDeadlineSeconds", NO_DEADLINE) == NO_DEADLINE:
        return [row for row in rows if row["type"] != "Progressing"]
    known = condition(rows, "Progressing")
    if deployment["spec"].get("paused"):
        if known is None or known["reason"] != "DeploymentPaused":
            return put(rows, "Progressing", "Unknown", "DeploymentPaused", "Deployment is paused", now)
        return rows
    if known is not None and known["reason"] == "DeploymentPaused":
        rows = put(rows, "Progressing", "Unknown", "DeploymentResumed", "Deployment is resumed", now)
        known = condition(rows, "Progressing")
    done = known is not None and known["reason"] == "NewReplicaSetAvailable"
    if done and counts["replicas"] == counts["updatedReplicas"]:
        return rows
    text = f'ReplicaSet "{new["metadata"]["name"]}"' if new is not None else f'Deployment "{_name(deployment)}"'
    if is_complete(deployment, counts):
        message = f"{text} has successfully progressed."
        return put(rows, "Progressing", "True", "NewReplicaSetAvailable", message, now, fresh=True)
    if _has_progressed(deployment.get("status") or {}, counts):
        return put(rows, "Progressing", "True", "ReplicaSetUpdated", f"{text} is progressing.", now, fresh=True)
    limit = deployment["spec"]["progressDeadlineSeconds"]
    if known is None or known["reason"] == "ProgressDeadlineExceeded" or done:
        return rows
    if parse_time(known["lastUpdateTime"]).timestamp() + limit < now:
        message = f"{text} has timed out progressing."
        return put(rows, "Progressing", "False", "ProgressDeadlineExceeded", message, now)
    return rows


def _has_progressed(old: Object, counts: Object) -> bool:
    def older(status: Object) -> int:
        return int(status.get("replicas", 0) - status.get("updatedReplicas", 0))

    more = ("updatedReplicas", "readyReplicas", "availableReplicas")
    return older(counts) < older(old) or any(counts[key] > old.get(key, 0) for key in more)


def _available(deployment: Object, rows: list[Object], count: int, now: float) -> list[Object]:
    if count >= size(deployment) - max_unavailable(deployment):
        reason, message = "MinimumReplicasAvailable", "Deployment has minimum availability."
        return put(rows, "Available", "True", reason, message, now)
    reason, message = "MinimumReplicasUnavailable", "Deployment does not have minimum availability."
    return put(rows, "Available", "False", reason, message, now)


def _failing(rows: list[Object], sets: list[Object], now: float) -> list[Object]:
    """The condition ReplicaFailure, copied from a ReplicaSet."""
    for replica_set in reversed(sets):
        row = condition((replica_set.get("status") or {}).get("conditions") or [], "ReplicaFailure")
        if row is not None:
            return put(rows, "ReplicaFailure", row["status"], row["reason"], row.get("message", ""), now)
    return [row for row in rows if row["type"] != "ReplicaFailure"]


def condition(rows: list[Object], type_: str) -> Object | None:
    return next((row for row in rows if row["type"] == type_), None)


def put(
    rows: list[Object], type_: str, value: str, reason: str, message: str, now: float, *, fresh: bool = False
) -> list[Object]:
    """The conditions with one of them set. An equal condition keeps its times, unless `fresh`."""
    old = condition(rows, type_)
    stamp = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    same = old is not None and (old["status"], old["reason"]) == (value, reason)
    if old is not None and same and (not fresh or (old.get("message"), old["lastUpdateTime"]) == (message, stamp)):
        return rows
    row = {
        "type": type_,
        "status": value,
        "lastUpdateTime": stamp,
        "lastTransitionTime": old["lastTransitionTime"] if old is not None and old["status"] == value else stamp,
        "reason": reason,
        "message": message,
    }
    return [row if other is old else other for other in rows] if old is not None else [*rows, row]


def _total(sets: list[Object], key: str) -> int:
    return sum((row.get("status") or {}).get(key, 0) for row in sets)


def _name(deployment: Object) -> str:
    text: str = deployment["metadata"]["name"]
    return text
