"""Sticky placement: a pod is placed again on the node that is stored for it, because its disk is there. Not in Volcano
and not in Kubernetes.

The node is in an annotation of an object that outlives the pod: an owner (profiles), or the PodGroup (sessions).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from volcano_py.scheduler.rules.arrays import Codes

ANNOTATION = "volcano.sh/sticky-node"
"""The annotation with the name of the node, if nothing else is configured."""
ELSEWHERE = "already stuck to another node"
"""Why all other nodes reject the pod."""


def annotation_of(annotation: str, pod: str, per_pod: bool) -> str:
    """The annotation of a pod. `per_pod`: the object has several pods, so that the pod's name is part of it."""
    return f"{annotation}.{pod}" if per_pod else annotation


def stored(annotations: Mapping[str, str], annotation: str, nodes: Collection[str], release: bool) -> str:
    """The node that is stored, or empty. `release`: whether a node that does not exist is ignored."""
    node = annotations.get(annotation, "")
    return "" if release and node not in nodes else node


def accepts(stored: str, node: str) -> bool:
    """Whether a node accepts a pod for which `stored` is stored."""
    return stored in ("", node)


def codes(stored: str, columns: Mapping[str, int]) -> Codes:
    """For each node 0 if it accepts the pod, else 1. `columns`: the nodes by name."""
    found: Codes = np.full(len(columns), int(bool(stored)), dtype=np.int8)
    if stored in columns:
        found[columns[stored]] = 0
    return found
