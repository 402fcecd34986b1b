"""The taints for a node's conditions, and how long a pod tolerates them.

Kubernetes: the node lifecycle controller's table of taints, and helper.GetMatchingTolerations.
"""

from __future__ import annotations

from typing import Any

from volcano_py.sandbox.apiserver.schema.codec import parse_time

Object = dict[str, Any]

PREFIX = "node.kubernetes.io/"
NOT_READY, UNREACHABLE = PREFIX + "not-ready", PREFIX + "unreachable"
UNSCHEDULABLE = PREFIX + "unschedulable"
OUT_OF_SERVICE = PREFIX + "out-of-service"
_BY_CONDITION = {
    ("Ready", "False"): NOT_READY,
    ("Ready", "Unknown"): UNREACHABLE,
    ("MemoryPressure", "True"): PREFIX + "memory-pressure",
    ("DiskPressure", "True"): PREFIX + "disk-pressure",
    ("PIDPressure", "True"): PREFIX + "pid-pressure",
    ("NetworkUnavailable", "True"): PREFIX + "network-unavailable",
}
_OURS = {*_BY_CONDITION.values(), UNSCHEDULABLE}


def desired_taints(node: Object, stamp: str) -> list[Object]:
    """The node's taints: those of other clients, and those for its conditions (new ones begin at `stamp`)."""
    spec = node.get("spec") or {}
    due = []
    for row in (node.get("status") or {}).get("conditions") or ():
        key = _BY_CONDITION.get((row["type"], row["status"]))
        if key is not None:
            due.append((key, "NoSchedule"))
            if row["type"] == "Ready":
                due.append((key, "NoExecute"))
    if spec.get("unschedulable"):
        due.append((UNSCHEDULABLE, "NoSchedule"))
    present = {(row["key"], row["effect"]): row for row in spec.get("taints") or ()}
    kept = [row for (key, effect), row in present.items() if not _is_ours(key, effect)]
    return [*kept, *(present.get(what) or _taint(*what, stamp) for what in due)]


def _is_ours(key: str, effect: str) -> bool:
    executes = (NOT_READY, UNREACHABLE)
    return key in _OURS and (effect == "NoSchedule" or (effect == "NoExecute" and key in executes))


def _taint(key: str, effect: str, stamp: str) -> Object:
    return {"key": key, "effect": effect, "timeAdded": stamp}


def executing(node: Object) -> list[Object]:
    """The taints that evict pods."""
    return [row for row in (node.get("spec") or {}).get("taints") or () if row["effect"] == "NoExecute"]


def seconds_to_eviction(pod: Object, taints: list[Object], now: float) -> float | None:
    """Seconds for which a pod tolerates such taints: 0 is not at all, None is forever."""
    waits: list[float] = []
    for taint in taints:
        bearing = [row for row in pod["spec"].get("tolerations") or () if tolerates(row, taint)]
        if not bearing:
            return 0.0
        limits = [row["tolerationSeconds"] for row in bearing if row.get("tolerationSeconds") is not None]
        if limits:
            began = parse_time(taint["timeAdded"]).timestamp() if taint.get("timeAdded") else now
            waits.append(max(began + max(min(limits), 0) - now, 0.0))
    return min(waits, default=None)


def tolerates(toleration: Object, taint: Object) -> bool:
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key", "") in ("", taint["key"])
    return bool(toleration.get("key") == taint["key"] and toleration.get("value", "") == taint.get("value", ""))
