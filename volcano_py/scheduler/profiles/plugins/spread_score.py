"""Spreading pods over domains: the preference. Kubernetes: PodTopologySpread, scoring.go."""

from __future__ import annotations

import math
from collections.abc import Sequence

from volcano_py.scheduler.profiles.cluster import Cluster
from volcano_py.scheduler.profiles.cycle_state import CycleState
from volcano_py.scheduler.profiles.extension_points import MAX_SCORE, Score
from volcano_py.scheduler.profiles.node_info import NodeInfo
from volcano_py.scheduler.profiles.plugins.spread_constraints import (
    HOSTNAME,
    Arguments,
    Constraint,
    constraints_of,
    counts_there,
    has_keys,
    matching_pods,
)
from volcano_py.scheduler.profiles.pod_info import PodInfo
from volcano_py.scheduler.profiles.status import SKIP, SUCCESS, Status

_KEY = "PodTopologySpread/score"


class _State:
    """Per constraint, the pods in each domain that has a feasible node, and the constraint's weight."""

    def __init__(self, constraints: list[Constraint]) -> None:
        self.constraints = constraints
        self.counts: list[dict[str, int]] = [{} for _ in constraints]
        self.weights: list[float] = []
        self.ignored: set[str] = set()
        """Feasible nodes that lack a key."""


class SpreadScore(Score):
    def __init__(self, args: Arguments, cluster: Cluster) -> None:
        self._args = args
        self._cluster = cluster

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Status:
        constraints = constraints_of(pod, "ScheduleAnyway", self._args, self._cluster)
        if not constraints:
            return SKIP
        all_keys = bool(pod.spread) or self._args.defaulting_type != "System"
        found = _State(constraints)
        for node in nodes:
            if all_keys and not has_keys(node.labels, constraints):
                found.ignored.add(node.name)
                continue
            for c, counts in zip(constraints, found.counts, strict=True):
                if c.key != HOSTNAME:
                    counts.setdefault(node.labels.get(c.key, ""), 0)
        for c, counts in zip(constraints, found.counts, strict=True):
            size = len(nodes) - len(found.ignored) if c.key == HOSTNAME else len(counts)
            found.weights.append(math.log(size + 2))
        for node in self._cluster.nodes.values():
            if all_keys and not has_keys(node.labels, constraints):
                continue
            for c, counts in zip(constraints, found.counts, strict=True):
                value = node.labels.get(c.key, "")
                if value in counts and counts_there(c, pod, node.node):
                    counts[value] += matching_pods(c, pod.namespace, node)
        state.write(_KEY, found)
        return SUCCESS

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        found: _State = state.read(_KEY)
        if node.name in found.ignored:
            return 0
        total = 0.0
        for c, counts, weight in zip(found.constraints, found.counts, found.weights, strict=True):
            value = node.labels.get(c.key)
            if value is not None:
                count = matching_pods(c, pod.namespace, node) if c.key == HOSTNAME else counts[value]
                total += count * weight + (c.max_skew - 1)
        return math.floor(total + 0.5)

    def normalize(self, state: CycleState, pod: PodInfo, scores: dict[str, int]) -> None:
        found: _State = state.read(_KEY)
        rated = [value for node, value in scores.items() if node not in found.ignored]
        low, high = min(rated, default=0), max(rated, default=0)
        for node, value in scores.items():
            if node in found.ignored:
                scores[node] = 0
            else:
                scores[node] = MAX_SCORE * (high + low - value) // high if high else MAX_SCORE
