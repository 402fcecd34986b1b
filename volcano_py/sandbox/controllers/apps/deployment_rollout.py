"""The next sizes of the ReplicaSets of a Deployment.

Kubernetes: the deployment controller's rolling.go, recreate.go and sync.go (proportional scaling). All are plain
functions of the objects; later steps follow from their statuses.
"""

from __future__ import annotations

from typing import Any

from volcano_py.sandbox.controllers.runtime.intstr import scaled

Object = dict[str, Any]
Sizes = dict[str, int]  # by the ReplicaSet's name

DESIRED = "deployment.kubernetes.io/desired-replicas"
MAXIMUM = "deployment.kubernetes.io/max-replicas"


def size(replica_set: Object) -> int:
    wanted: int = replica_set["spec"]["replicas"]
    return wanted


def available(replica_set: Object) -> int:
    count: int = (replica_set.get("status") or {}).get("availableReplicas", 0)
    return count


def name(replica_set: Object) -> str:
    text: str = replica_set["metadata"]["name"]
    return text


def by_age(sets: list[Object]) -> list[Object]:
    """Oldest first."""
    return sorted(sets, key=lambda row: (row["metadata"].get("creationTimestamp", ""), name(row)))


def is_rolling(deployment: Object) -> bool:
    return bool(deployment["spec"]["strategy"]["type"] == "RollingUpdate")


def max_surge(deployment: Object) -> int:
    """The maximum number of pods above spec.replicas."""
    if not is_rolling(deployment):
        return 0
    rolling = deployment["spec"]["strategy"].get("rollingUpdate") or {}
    return scaled(rolling.get("maxSurge"), size(deployment), up=True)


def max_unavailable(deployment: Object) -> int:
    """The maximum number of unavailable pods; 1 if otherwise neither this nor the surge would permit a step."""
    if not is_rolling(deployment) or not size(deployment):
        return 0
    rolling = deployment["spec"]["strategy"].get("rollingUpdate") or {}
    count = scaled(rolling.get("maxUnavailable"), size(deployment), up=False)
    if not count and not max_surge(deployment):
        count = 1
    return min(count, size(deployment))


# --- rolling update --------------------------------------------------------------------------------------------------


def new_size(deployment: Object, new: Object, olds: list[Object]) -> int:
    """The size of the newest ReplicaSet: up to spec.replicas, within the surge."""
    wanted = size(deployment)
    if not is_rolling(deployment) or size(new) >= wanted:
        return wanted
    surge = wanted + max_surge(deployment) - size(new) - sum(map(size, olds))
    return size(new) + max(min(surge, wanted - size(new)), 0)


def shrink_old(deployment: Object, new: Object, olds: list[Object]) -> Sizes:
    """Smaller sizes of old ReplicaSets: first unavailable pods, then as many as may be unavailable."""
    minimum = size(deployment) - max_unavailable(deployment)
    everything = [new, *olds]
    spare = sum(map(size, everything)) - minimum - (size(new) - available(new))
    out: Sizes = {}
    if spare <= 0:
        return out
    cleaned = 0
    for row in by_age(olds):
        count = min(spare - cleaned, size(row) - available(row))
        if size(row) and count > 0:
            out[name(row)] = size(row) - count
            cleaned += count
    spare = sum(map(available, everything)) - minimum
    for row in by_age(olds):
        now = out.get(name(row), size(row))
        count = min(now, spare)
        if now and count > 0:
            out[name(row)] = now - count
            spare -= count
    return out


# --- scaling ---------------------------------------------------------------------------------------------------------


def is_scaling(deployment: Object, sets: list[Object]) -> bool:
    """Whether spec.replicas has changed since the ReplicaSets were sized."""
    for row in sets:
        recorded = (row["metadata"].get("annotations") or {}).get(DESIRED, "")
        if size(row) and recorded.isdigit() and int(recorded) != size(deployment):
            return True
    return False


def scale(deployment: Object, new: Object | None, olds: list[Object]) -> Sizes:
    """Sizes after a change of spec.replicas, in proportion during a roll-out."""
    sets = [*olds, *([new] if new is not None else [])]
    active = [row for row in sets if size(row)]
    if len(active) <= 1:
        only = active[0] if active else new if new is not None else next(reversed(by_age(olds)), None)
        return {} if only is None or size(only) == size(deployment) else {name(only): size(deployment)}
    if new is not None and _saturated(deployment, new):
        return {name(row): 0 for row in olds if size(row)}
    return _proportional(deployment, active) if is_rolling(deployment) else {}


def _saturated(deployment: Object, new: Object) -> bool:
    recorded = (new["metadata"].get("annotations") or {}).get(DESIRED, "")
    wanted = size(deployment)
    return size(new) == wanted and recorded == str(wanted) and available(new) == wanted


def _proportional(deployment: Object, active: list[Object]) -> Sizes:
    allowed = size(deployment) + max_surge(deployment) if size(deployment) else 0
    change = allowed - sum(map(size, active))
    newest_first = list(reversed(by_age(active)))
    order = sorted(newest_first if change > 0 else by_age(active), key=size, reverse=True)
    out: Sizes = {}
    done = 0
    for row in order:
        share = _share(deployment, row, change, done) if change else 0
        out[name(row)] = size(row) + share
        done += share
    if change != done:
        first = name(order[0])
        out[first] = max(out[first] + change - done, 0)
    return out


def _share(deployment: Object, row: Object, change: int, done: int) -> int:
    """The part of a change for one ReplicaSet, in proportion to its size."""
    recorded = (row["metadata"].get("annotations") or {}).get(MAXIMUM, "")
    replicas = (deployment.get("status") or {}).get("replicas", 0)
    before = int(recorded) if recorded.isdigit() and int(recorded) else replicas
    if not size(row) or not before:
        return 0
    part = -size(row)
    if size(deployment):
        part = int(size(row) * (size(deployment) + max_surge(deployment)) / before + 0.5) - size(row)
    rest = change - done
    return min(part, rest) if change > 0 else max(part, rest)
