"""Spreading pods over domains: the score. Kubernetes: PodTopologySpread, scoring.go."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from volcano_py.scheduler.profiles.cluster import Cluster
from volcano_py.scheduler.profiles.columns import Bools, Columns, Indices, Ints
from volcano_py.scheduler.profiles.cycle_state import CycleState
from volcano_py.scheduler.profiles.extension_points import MAX_SCORE, Score
from volcano_py.scheduler.profiles.node_info import NodeInfo
from volcano_py.scheduler.profiles.plugins.node_affinity import nodes_of
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
    """The constraints, and per constraint the pods in each domain that has a feasible node, and its weight."""

    def __init__(self, constraints: list[Constraint], nodes: Sequence[NodeInfo], all_keys: bool) -> None:
        self.constraints = constraints
        self.nodes = nodes
        """The nodes that fit."""
        self.all_keys = all_keys
        """Whether only nodes that have all keys are scored."""
        self.counts: list[dict[str, int]] = []
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
        state.write(_KEY, _State(constraints, nodes, all_keys))
        return SUCCESS

    def score_fitting(self, state: CycleState, pod: PodInfo, nodes: Columns, fits: Indices) -> Ints | None:
        found: _State = state.read(_KEY)
        domains = [nodes.domains(c.key) for c in found.constraints]
        has_keys: Bools = np.ones(len(nodes), dtype=np.bool_)
        for d in domains if found.all_keys else ():
            has_keys &= d.has
        rated = has_keys[fits]
        total = np.zeros(len(fits))
        for c, d in zip(found.constraints, domains, strict=True):
            pods = matching_columns(c, pod.namespace, nodes)
            here = d.codes[fits]
            if c.key == HOSTNAME:
                size, counts = int(rated.sum()), pods[fits]
            else:
                size = len(np.unique(here[rated]))
                there = has_keys & counted(c, pod, nodes)
                counts = np.bincount(d.codes[there], weights=pods[there], minlength=d.size)[here].astype(np.int64)
            total += np.where(d.has[fits], counts * math.log(size + 2) + (c.max_skew - 1), 0.0)
        raw = np.floor(total + 0.5).astype(np.int64)
        low, high = (int(raw[rated].min()), int(raw[rated].max())) if rated.any() else (0, 0)
        scores = MAX_SCORE * (high + low - raw) // high if high else np.full(len(fits), MAX_SCORE, dtype=np.int64)
        return np.where(rated, scores, 0)

    def _prepare(self, found: _State, pod: PodInfo) -> None:
        """Count the pods, for the form without arrays."""
        constraints = found.constraints
        found.counts = [{} for _ in constraints]
        for node in found.nodes:
            if found.all_keys and not has_keys(node.labels, constraints):
                found.ignored.add(node.name)
                continue
            for c, counts in zip(constraints, found.counts, strict=True):
                if c.key != HOSTNAME:
                    counts.setdefault(node.labels.get(c.key, ""), 0)
        for c, counts in zip(constraints, found.counts, strict=True):
            size = len(found.nodes) - len(found.ignored) if c.key == HOSTNAME else len(counts)
            found.weights.append(math.log(size + 2))
        for node in self._cluster.nodes.values():
            if found.all_keys and not has_keys(node.labels, constraints):
                continue
            for c, counts in zip(constraints, found.counts, strict=True):
                value = node.labels.get(c.key, "")
                if value in counts and counts_there(c, pod, node.node):
                    counts[value] += matching_pods(c, pod.namespace, node)

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        found: _State = state.read(_KEY)
        if not found.counts:
            self._prepare(found, pod)
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


def matching_columns(constraint: Constraint, namespace: str, nodes: Columns) -> Ints:
    """`matching_pods` for all nodes."""
    return nodes.count((constraint.selectors_key, namespace), partial(matching_pods, constraint, namespace))


def counted(constraint: Constraint, pod: PodInfo, nodes: Columns) -> Bools:
    """The nodes on which the constraint's policies count pods: `counts_there` for all of them."""
    ok: Bools = np.ones(len(nodes), dtype=np.bool_)
    if constraint.affinity_counts:
        ok &= nodes_of(pod, nodes)
    if constraint.taints_count:
        ok &= ~nodes.of_model(nodes.taints.repel(pod.tolerations))
    return ok
