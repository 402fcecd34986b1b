"""The filter that keeps new pods away from nodes whose objects are being verified. Not in Volcano.

The cache audit (`scheduler.cache.audit`) holds a node while it doubts the Node or a pod on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from volcano_py.scheduler.framework.search.fit_errors import FitCode, Reason
from volcano_py.scheduler.framework.search.node_rules import STATIC, Codes, Scope
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.nodes.held_nodes import HeldNodes

OWNER = "cache-audit"
"""What stands for a plugin in reasons and faults."""
TEXT = "node(s) were held until the cache audit has verified their objects"


class HeldNodesFilter:
    """Rejects held nodes for every task; evictions do not help."""

    def __init__(self, held: HeldNodes, names: Sequence[str]) -> None:
        # Results of STATIC filters are kept by name and class.
        self.name = f"held-nodes {held.generation}"
        self.reasons = [Reason(TEXT, FitCode.UNRESOLVABLE)]
        self._held = held
        self._names = names

    @property
    def scope(self) -> Literal[Scope.STATIC]:
        return STATIC

    def applies(self, task: Task) -> bool:
        return True

    def filter(self, task: Task) -> Codes:
        return np.array([name in self._held for name in self._names], dtype=np.int8)
