"""On which nodes the pods of a DaemonSet are created and deleted, and its status.

Kubernetes: the daemon controller's daemon_controller.go and update.go, in plain functions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from volcano_py.sandbox.controllers.apps.controller_revision import POD_LABEL
from volcano_py.sandbox.controllers.node import node_selector
from volcano_py.sandbox.controllers.node.node_taints import NOT_READY, PREFIX, UNREACHABLE, UNSCHEDULABLE, tolerates
from volcano_py.sandbox.controllers.runtime.intstr import scaled
from volcano_py.sandbox.controllers.runtime.pods import Pod

Object = dict[str, Any]
Nodes = dict[str, Object]
ByNode = dict[str, list[Pod]]

TOLERATIONS = (
    (NOT_READY, "NoExecute"),
    (UNREACHABLE, "NoExecute"),
    (PREFIX + "disk-pressure", "NoSchedule"),
    (PREFIX + "memory-pressure", "NoSchedule"),
    (PREFIX + "pid-pressure", "NoSchedule"),
    (UNSCHEDULABLE, "NoSchedule"),
)


class Plan(NamedTuple):
    """create: node names."""

    create: list[str]
    delete: list[Pod]


def tolerations(owner: Object) -> list[Object]:
    """The tolerations of the template, and those of all daemon pods."""
    spec = owner["spec"]["template"]["spec"]
    rows = list(spec.get("tolerations") or ())
    wanted = [*TOLERATIONS, (PREFIX + "network-unavailable", "NoSchedule")] if spec.get("hostNetwork") else TOLERATIONS
    rows += [{"key": key, "operator": "Exists", "effect": effect} for key, effect in wanted]
    return rows


def belongs(owner: Object, node: Object) -> tuple[bool, bool]:
    """(whether a pod should run on a node, whether an existing one may stay)."""
    spec, meta = owner["spec"]["template"]["spec"], node["metadata"]
    labels = meta.get("labels") or {}
    if not (spec.get("nodeSelector") or {}).items() <= labels.items():
        return False, False
    hard = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    if hard is not None and not node_selector.matches(hard.get("nodeSelectorTerms") or [], labels, meta["name"]):
        return False, False
    bearing = tolerations(owner)
    taints = (node.get("spec") or {}).get("taints") or ()
    unborne = [row["effect"] for row in taints if not any(tolerates(bears, row) for bears in bearing)]
    return not {"NoSchedule", "NoExecute"} & set(unborne), "NoExecute" not in unborne


def plan(owner: Object, nodes: Nodes, pods: ByNode, update: str, now: float) -> Plan:
    """Create a pod on every node that should run one, then take the next step of a roll-out."""
    out = Plan([], [])
    for name, node in nodes.items():
        run, stay = belongs(owner, node)
        here = [pod for pod in pods.get(name, ()) if not pod.deleting]
        out.delete.extend(pod for pod in here if pod.finished or not stay)
        here = [pod for pod in here if not pod.finished]
        if run and not pods.get(name):
            out.create.append(name)
        elif stay:
            out.delete.extend(_surplus(here, update))
    if not out.create and not out.delete and owner["spec"]["updateStrategy"]["type"] == "RollingUpdate":
        return _roll(owner, nodes, pods, update, now)
    return out


def _surplus(here: list[Pod], update: str) -> list[Pod]:
    """If a node has more than one pod of a revision, the oldest is kept."""
    out = []
    for same in ([p for p in here if is_new(p, update)], [p for p in here if not is_new(p, update)]):
        out += sorted(same, key=lambda pod: (pod.created, pod.name))[1:]
    return out


def _roll(owner: Object, nodes: Nodes, pods: ByNode, update: str, now: float) -> Plan:
    rolling = owner["spec"]["updateStrategy"].get("rollingUpdate") or {}
    wanted = [name for name, node in nodes.items() if belongs(owner, node)[0]]
    surge = scaled(rolling.get("maxSurge"), len(wanted), up=True)
    slots = scaled(rolling.get("maxUnavailable", 1), len(wanted), up=True)
    old: list[Pod] = []
    out = Plan([], [])
    for name in wanted:
        here = [pod for pod in pods.get(name, ()) if not pod.deleting]
        fresh = [pod for pod in here if is_new(pod, update)]
        stale = [pod for pod in here if not is_new(pod, update)]
        if not any(available(owner, pod, now) for pod in here):
            slots -= 1
            out.delete.extend(stale)  # the node is not available in any case
        elif any(available(owner, pod, now) for pod in fresh):
            out.delete.extend(stale)
        elif fresh:
            surge -= 1
        else:
            old.extend(stale)
    if surge > 0:
        return Plan([pod.node for pod in old[:surge] if pod.node], out.delete)
    out.delete.extend(old[: max(slots, 0)])
    return out


def is_new(pod: Pod, update: str) -> bool:
    return pod.labels.get(POD_LABEL) == update


def available(owner: Object, pod: Pod, now: float) -> bool:
    return not pod.deleting and pod.available_in(owner["spec"].get("minReadySeconds", 0), now) == 0


def status_of(owner: Object, nodes: Nodes, pods: ByNode, update: str, now: float) -> tuple[Object, float | None]:
    """The status according to the pods, and the seconds until it changes without an event."""
    counts = dict.fromkeys(
        (
            "currentNumberScheduled",
            "numberMisscheduled",
            "desiredNumberScheduled",
            "numberReady",
            "updatedNumberScheduled",
            "numberAvailable",
            "numberUnavailable",
        ),
        0,
    )
    waits = []
    for name, node in nodes.items():
        run, _ = belongs(owner, node)
        here = sorted(pods.get(name, ()), key=lambda pod: (not pod.ready, pod.created))
        if not run:
            counts["numberMisscheduled"] += bool(here)
            continue
        counts["desiredNumberScheduled"] += 1
        counts["currentNumberScheduled"] += bool(here)
        counts["numberReady"] += any(pod.ready for pod in here)
        counts["updatedNumberScheduled"] += any(is_new(pod, update) for pod in here)
        is_available = any(available(owner, pod, now) for pod in here)
        counts["numberAvailable"] += is_available
        counts["numberUnavailable"] += not is_available
        waits += [pod.available_in(owner["spec"].get("minReadySeconds", 0), now) for pod in here]
    always = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady")
    status = {key: value for key, value in counts.items() if value or key in always}
    status["observedGeneration"] = owner["metadata"].get("generation", 0)
    if "collisionCount" in (owner.get("status") or {}):
        status["collisionCount"] = owner["status"]["collisionCount"]
    return status, min((wait for wait in waits if wait), default=None)
