"""Taints and tolerations. Kubernetes: component-helpers/scheduling/corev1, Toleration.ToleratesTaint."""

from __future__ import annotations

from collections.abc import Sequence

from volcano_py.api.core import Node, Taint, Toleration

UNSCHEDULABLE_TAINT = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether one toleration covers one taint."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "" | "Equal":
            return toleration.value == taint.value
        case "Exists":
            return True
    return False


def tolerated(taint: Taint, tolerations: Sequence[Toleration]) -> bool:
    """Whether one of the tolerations covers the taint."""
    return any(tolerates(t, taint) for t in tolerations)


def repelling(node: Node) -> list[Taint]:
    """The taints that keep new pods off a node; cordoning counts as one."""
    taints = [t for t in node.spec.taints or () if t.effect in ("NoSchedule", "NoExecute")]
    return [*taints, UNSCHEDULABLE_TAINT] if node.spec.unschedulable else taints
