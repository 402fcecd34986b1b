"""Cordons, taints and tolerations."""

from __future__ import annotations

from typing import Any

from tests.reference.kube.selectors import Pod
from tests.reference.node import Node

Taint = dict[str, Any]


def unschedulable_is_tolerated(pod: Pod, node: Node) -> bool:
    cordon = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    return not node.unschedulable or _tolerated(cordon, pod["spec"].get("tolerations") or [])


def taints_are_tolerated(pod: Pod, node: Node) -> bool:
    hard = [t for t in node.taints if t["effect"] in ("NoSchedule", "NoExecute")]
    return all(_tolerated(t, pod["spec"].get("tolerations") or []) for t in hard)


def intolerable_preferences(pod: Pod, node: Node) -> int:
    """PreferNoSchedule taints that the pod does not tolerate."""
    soft = [t for t in pod["spec"].get("tolerations") or [] if t.get("effect", "") in ("", "PreferNoSchedule")]
    count = 0
    for taint in node.taints:
        if taint["effect"] == "PreferNoSchedule" and not _tolerated(taint, soft):
            count += 1
    return count


def _tolerated(taint: Taint, tolerations: list[dict[str, Any]]) -> bool:
    return any(_tolerates(t, taint) for t in tolerations)


def _tolerates(toleration: dict[str, Any], taint: Taint) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    operator = toleration.get("operator") or "Equal"
    if operator == "Exists":
        return True
    return operator == "Equal" and (toleration.get("value") or "") == (taint.get("value") or "")
