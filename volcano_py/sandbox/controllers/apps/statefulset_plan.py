"""Which pods of a StatefulSet are created and deleted next, and its status.

Kubernetes: stateful_set_control.go. Plain functions; pods are given by their ordinals.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from volcano_py.sandbox.controllers.apps.controller_revision import POD_LABEL
from volcano_py.sandbox.controllers.runtime.intstr import scaled
from volcano_py.sandbox.controllers.runtime.pods import Pod

Object = dict[str, Any]
Pods = dict[int, Pod]


class Plan(NamedTuple):
    """Ordinals to create, surplus pods to delete, and pods to recreate."""

    create: list[int]
    condemn: list[Pod]
    renew: list[Pod]


def start(owner: Object) -> int:
    first: int = (owner["spec"].get("ordinals") or {}).get("start", 0)
    return first


def wanted(owner: Object) -> range:
    return range(start(owner), start(owner) + owner["spec"]["replicas"])


def is_ordered(owner: Object) -> bool:
    return bool(owner["spec"].get("podManagementPolicy") != "Parallel")


def partition(owner: Object) -> int:
    strategy = owner["spec"].get("updateStrategy") or {}
    number: int = (strategy.get("rollingUpdate") or {}).get("partition") or 0
    return number


def revision_for(owner: Object, ordinal: int, current: str, update: str) -> str:
    """The revision of a new pod: below the partition it is the current one."""
    rolling = (owner["spec"].get("updateStrategy") or {}).get("type") == "RollingUpdate"
    return current if rolling and ordinal < start(owner) + partition(owner) else update


def plan(owner: Object, pods: Pods, update: str, now: float) -> Plan:
    """The next step. An ordered set creates one pod at a time, each after the previous ones are available."""
    ordered = is_ordered(owner)
    out = Plan([], [], [])
    for ordinal in wanted(owner):
        pod = pods.get(ordinal)
        if pod is None:
            out.create.append(ordinal)
        elif pod.finished and not pod.deleting:
            out.renew.append(pod)
        elif healthy(owner, pod, now):
            continue
        if ordered:
            return out
    condemned = [pods[ordinal] for ordinal in sorted(pods, reverse=True) if ordinal not in wanted(owner)]
    if condemned and ordered:
        out.condemn.extend(pod for pod in condemned[:1] if not pod.deleting)
        return out
    out.condemn.extend(pod for pod in condemned if not pod.deleting)
    out.renew.extend(pod for pod in outdated(owner, pods, update, now) if pod not in out.renew)
    return out


def outdated(owner: Object, pods: Pods, update: str, now: float) -> list[Pod]:
    """Pods of another revision to delete now, in descending order, as many at once as may be unavailable."""
    strategy = owner["spec"].get("updateStrategy") or {}
    if strategy.get("type") != "RollingUpdate":
        return []
    slots = max_unavailable(owner)
    out = []
    for ordinal in reversed(wanted(owner)):
        if ordinal < start(owner) + partition(owner) or slots <= 0:
            break
        pod = pods.get(ordinal)
        if pod is not None and pod.labels.get(POD_LABEL) != update and not pod.deleting:
            out.append(pod)
            slots -= 1
        elif pod is None or not healthy(owner, pod, now):
            slots -= 1
    return out


def max_unavailable(owner: Object) -> int:
    rolling = (owner["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
    value = rolling.get("maxUnavailable", 1)
    if isinstance(value, str):
        return max(scaled(value, owner["spec"]["replicas"], up=True), 1)
    return int(value)


def healthy(owner: Object, pod: Pod, now: float) -> bool:
    """Running, ready for minReadySeconds, and not terminating."""
    if pod.deleting or pod.phase != "Running":
        return False
    return pod.available_in(owner["spec"].get("minReadySeconds", 0), now) == 0


def status_of(owner: Object, pods: list[Pod], current: str, update: str, now: float) -> tuple[Object, float | None]:
    """The status according to the pods, and the seconds until it changes without an event."""
    old: Object = owner.get("status") or {}
    waits = [pod.available_in(owner["spec"].get("minReadySeconds", 0), now) for pod in pods if pod.phase == "Running"]
    staying = [pod for pod in pods if not pod.deleting]
    replicas = len(pods)
    ready = sum(pod.ready and pod.phase == "Running" for pod in pods)
    at_current = sum(pod.labels.get(POD_LABEL) == current for pod in staying)
    at_update = sum(pod.labels.get(POD_LABEL) == update for pod in staying)
    rolling = (owner["spec"].get("updateStrategy") or {}).get("type") == "RollingUpdate"
    if rolling and at_update == replicas == ready:
        current, at_current = update, at_update
    status = {
        "observedGeneration": owner["metadata"].get("generation", 0),
        "replicas": replicas,
        "readyReplicas": ready,
        "currentReplicas": at_current,
        "updatedReplicas": at_update,
        "currentRevision": current,
        "updateRevision": update,
        "collisionCount": old.get("collisionCount", 0),
        "availableReplicas": sum(wait == 0 for wait in waits),
    }
    always = ("replicas", "availableReplicas", "collisionCount")
    kept = {key: value for key, value in status.items() if value or key in always}
    return kept, min((wait for wait in waits if wait), default=None)
