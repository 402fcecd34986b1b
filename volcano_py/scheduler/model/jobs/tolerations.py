"""Taints and tolerations. Kubernetes: component-helpers/scheduling/corev1, Toleration.ToleratesTaint."""

from __future__ import annotations

import re
from collections.abc import Sequence

from volcano_py.api.core import Node, Taint, Toleration

_INTEGER = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
UNSCHEDULABLE_TAINT = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether a toleration tolerates a taint."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "" | "Equal":
            return toleration.value == taint.value
        case "Exists":
            return True
        case "Gt" | "Lt":
            # The API server stores these only with the feature gate TaintTolerationComparisonOps.
            have, bound = _integer(taint.value), _integer(toleration.value)
            if have is None or bound is None:
                return False
            return have > bound if toleration.operator == "Gt" else have < bound
    return False


def _integer(text: str) -> int | None:
    """The text as a 64-bit integer in decimal notation; None: it is not one."""
    if not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(1 << 63) <= number < 1 << 63 else None


def tolerated(taint: Taint, tolerations: Sequence[Toleration]) -> bool:
    """Whether one of the tolerations tolerates the taint."""
    return any(tolerates(t, taint) for t in tolerations)


def repelling(node: Node) -> list[Taint]:
    """The taints that keep new pods off a node, including the one of a cordoned node."""
    taints = [t for t in node.spec.taints or () if t.effect in ("NoSchedule", "NoExecute")]
    return [*taints, UNSCHEDULABLE_TAINT] if node.spec.unschedulable else taints
