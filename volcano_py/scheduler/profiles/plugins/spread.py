"""Spreading pods over domains: the filter. Kubernetes: PodTopologySpread, filtering.go."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from volcano_py.api.core import Node
from volcano_py.scheduler.profiles.cluster import Cluster
from volcano_py.scheduler.profiles.columns import Bools, Columns
from volcano_py.scheduler.profiles.cycle_state import CycleState
from volcano_py.scheduler.profiles.events import NODES, PODS, Action, Interest
from volcano_py.scheduler.profiles.extension_points import Filter, PreFilter
from volcano_py.scheduler.profiles.node_info import NodeInfo
from volcano_py.scheduler.profiles.plugins.spread_constraints import (
    Arguments,
    Constraint,
    constraints_of,
    counts_there,
    has_keys,
    selects,
)
from volcano_py.scheduler.profiles.plugins.spread_score import SpreadScore, counted, matching_columns
from volcano_py.scheduler.profiles.pod_info import PodInfo
from volcano_py.scheduler.profiles.status import SKIP, SUCCESS, Status, unresolvable, unschedulable

_SKEW = unschedulable("node(s) didn't match pod topology spread constraints")
_NO_KEY = unresolvable("node(s) didn't match pod topology spread constraints (missing required label)")


class _State:
    """Per constraint, the pods in each domain."""

    def __init__(self, constraints: list[Constraint]) -> None:
        self.constraints = constraints
        self.counts: list[dict[str, int]] = [{} for _ in constraints]

    def clone(self) -> _State:
        other = _State(self.constraints)
        other.counts = [dict(c) for c in self.counts]
        return other


def _lowest(constraint: Constraint, counts: dict[str, int]) -> int:
    """The number of pods in the emptiest domain."""
    return 0 if len(counts) < constraint.min_domains else min(counts.values(), default=2**31 - 1)


class PodTopologySpread(SpreadScore, PreFilter, Filter):
    name = "PodTopologySpread"

    def __init__(self, args: Arguments, cluster: Cluster) -> None:
        super().__init__(args, cluster)

    def pre_filter(self, state: CycleState, pod: PodInfo) -> tuple[Collection[str] | None, Status]:
        constraints = constraints_of(pod, "DoNotSchedule", self._args, self._cluster)
        if not constraints:
            return None, SKIP
        found = _State(constraints)
        nodes = self._cluster.columns
        keys: Bools = np.ones(len(nodes), dtype=np.bool_)
        for c in constraints:
            keys &= nodes.domains(c.key).has
        for c, counts in zip(constraints, found.counts, strict=True):
            domains, there = nodes.domains(c.key), keys & counted(c, pod, nodes)
            pods = matching_columns(c, pod.namespace, nodes)
            sums = np.bincount(domains.codes[there], weights=pods[there], minlength=domains.size)
            for code in np.unique(domains.codes[there]).tolist():
                counts[domains.values[code]] = int(sums[code])
        state.write(self.name, found)
        return None, SUCCESS

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo) -> None:
        self._move(state, pod, added, node, 1)

    def remove_pod(self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo) -> None:
        self._move(state, pod, removed, node, -1)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        found: _State = state.read(self.name)
        for c, counts in zip(found.constraints, found.counts, strict=True):
            value = node.labels.get(c.key)
            if value is None:
                return _NO_KEY
            if counts.get(value, 0) + selects(c, pod.labels) - _lowest(c, counts) > c.max_skew:
                return _SKEW
        return SUCCESS

    def filter_fitting(self, state: CycleState, pod: PodInfo, nodes: Columns, ok: Bools) -> Bools:
        found: _State = state.read(self.name)
        fits = ok
        for c, counts in zip(found.constraints, found.counts, strict=True):
            domains = nodes.domains(c.key)
            lowest = _lowest(c, counts)
            here = np.array([counts.get(value, 0) for value in domains.values], dtype=np.int64)[domains.codes]
            fits = fits & domains.has & (here + selects(c, pod.labels) - lowest <= c.max_skew)
        return fits

    def interests(self) -> Sequence[Interest]:
        return (
            Interest(PODS, Action.ADD | Action.DELETE | Action.POD_LABEL | Action.TOLERATION, self._pod_helps),
            Interest(NODES, Action.ADD | Action.DELETE | Action.NODE_LABEL | Action.TAINT, self._node_helps),
        )

    def _move(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo, sign: int) -> None:
        found: _State = state.read(self.name)
        if other.namespace != pod.namespace or not has_keys(node.labels, found.constraints):
            return
        for c, counts in zip(found.constraints, found.counts, strict=True):
            if selects(c, other.labels) and counts_there(c, pod, node.node):
                value = node.labels[c.key]
                counts[value] = counts.get(value, 0) + sign

    def _pod_helps(self, pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> bool:
        own = new is not None and new.pod.metadata.uid == pod.pod.metadata.uid
        there = new if new is not None else old
        placed = there is not None and (there.node or there.pod.status.nominated_node_name)
        if not own and (not placed or any(p is not None and p.namespace != pod.namespace for p in (old, new))):
            return False
        constraints = constraints_of(pod, "DoNotSchedule", self._args, self._cluster)
        if own and old is not None and new is not None and old.tolerations != new.tolerations:
            return any(c.taints_count for c in constraints)
        before = [old is not None and selects(c, old.labels) for c in constraints]
        after = [new is not None and selects(c, new.labels) for c in constraints]
        return before != after

    def _node_helps(self, pod: PodInfo, old: Node | None, new: Node | None) -> bool:
        constraints = constraints_of(pod, "DoNotSchedule", self._args, self._cluster)
        before = (old.metadata.labels or {}) if old is not None else {}
        after = (new.metadata.labels or {}) if new is not None else {}
        matched = old is not None and has_keys(before, constraints)
        matches = new is not None and has_keys(after, constraints)
        if old is None or new is None:
            return matched or matches
        moved = any(before.get(c.key) != after.get(c.key) for c in constraints)
        return matched != matches or (matches and (moved or (old.spec.taints or []) != (new.spec.taints or [])))
