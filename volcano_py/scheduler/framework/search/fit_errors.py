"""Why a task fits no node: reasons counted over nodes. Volcano: FitErrors, and the codes of kube-scheduler's
Status."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class FitCode(IntEnum):
    """What a rejection means. UNRESOLVABLE: evictions would not help."""

    SUCCESS = 0
    ERROR = 1
    UNSCHEDULABLE = 2
    UNRESOLVABLE = 3
    WAIT = 4
    SKIP = 5


ABORTING = frozenset((FitCode.ERROR, FitCode.UNRESOLVABLE, FitCode.WAIT, FitCode.SKIP))
"""Codes after which a node's remaining rules are not evaluated."""


class Reason(NamedTuple):
    """Why a node rejects a task."""

    text: str
    code: FitCode = FitCode.UNSCHEDULABLE


class FitErrors:
    """Why the nodes reject one task: reasons with the number of nodes."""

    __slots__ = ("counts", "error", "hyper_node", "nodes", "unresolvable")

    def __init__(
        self,
        counts: dict[str, int] | None = None,
        nodes: int = 0,
        unresolvable: NDArray[np.bool_] | None = None,
        error: str = "",
    ) -> None:
        self.counts = counts or {}
        """Reason text → number of nodes; a node with two reasons counts in both."""
        self.nodes = nodes
        """Number of nodes that rejected the task."""
        self.unresolvable = unresolvable
        """Nodes on which evicting pods would not help; None: none."""
        self.error = error
        """A reason that concerns no particular node."""
        self.hyper_node = ""

    def __str__(self) -> str:
        prefix = self.error or f"0/{self.nodes} nodes are unavailable"
        if not self.counts:
            return prefix
        reasons = ", ".join(sorted(f"{count} {reason}" for reason, count in self.counts.items()))
        text = f"{prefix}: {reasons}."
        if not self.hyper_node:
            return text
        return f"In {'domain' if '=' in self.hyper_node else 'hyperNode'} {self.hyper_node}: {text}"


def insufficient(resource: str) -> str:
    return f"Insufficient {resource}"
