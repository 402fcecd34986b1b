"""Spreading pods over domains, for profiles. Kubernetes: PodTopologySpread."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Literal

import msgspec
import numpy as np

from volcano_py.api.affinity import TopologySpreadConstraint
from volcano_py.api.core import Node
from volcano_py.scheduler.profiles.cluster import ProfileCluster
from volcano_py.scheduler.profiles.columns import Columns
from volcano_py.scheduler.profiles.plugin_api.cycle_state import CycleState
from volcano_py.scheduler.profiles.plugin_api.events import NODES, PODS, ActionType, Interest
from volcano_py.scheduler.profiles.plugin_api.extension_points import Filter, PreFilter, Score
from volcano_py.scheduler.profiles.plugin_api.node_info import NodeInfo
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.plugin_api.status import SKIP, SUCCESS, Status, unresolvable, unschedulable
from volcano_py.scheduler.rules.arrays import Bools, Indices, Ints
from volcano_py.scheduler.rules.node_affinity import required_of
from volcano_py.scheduler.rules.spread import (
    SYSTEM_DEFAULTS,
    DomainPods,
    Preference,
    SpreadConstraint,
    countings,
    default_selectors,
    included,
    includes,
    of_pod,
    scores,
    with_selectors,
)

_REJECTIONS = (
    SUCCESS,
    unresolvable("node(s) didn't match pod topology spread constraints (missing required label)"),
    unschedulable("node(s) didn't match pod topology spread constraints"),
)


class SpreadArguments(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    default_constraints: list[TopologySpreadConstraint] = []
    """Constraints for pods without own ones; they count the pods of the same Services and owners."""
    defaulting_type: Literal["System", "List"] = "System"

    @property
    def defaults(self) -> Sequence[TopologySpreadConstraint]:
        return SYSTEM_DEFAULTS if self.defaulting_type == "System" else self.default_constraints


class _State:
    """The constraints, with the pods in each domain."""

    def __init__(self, constraints: list[SpreadConstraint], pods: list[DomainPods]) -> None:
        self.constraints = constraints
        self.pods = pods

    def clone(self) -> _State:
        return _State(self.constraints, [p.clone() for p in self.pods])


class _Scores:
    """The constraints of the score and the nodes that fit; the scores by node, once they are computed."""

    def __init__(self, constraints: list[SpreadConstraint], nodes: Sequence[NodeInfo]) -> None:
        self.constraints = constraints
        self.nodes = nodes
        self.by_node: dict[str, int] = {}


class PodTopologySpread(PreFilter, Filter, Score):
    name = "PodTopologySpread"

    def __init__(self, args: SpreadArguments, cluster: ProfileCluster) -> None:
        self._args = args
        self._cluster = cluster

    def pre_filter(self, state: CycleState, pod: PodInfo) -> tuple[Collection[str] | None, Status]:
        constraints = self._constraints(pod, "DoNotSchedule")
        if not constraints:
            return None, SKIP
        nodes = self._cluster.columns
        members = [_members(c, pod, nodes) for c in constraints]
        found = countings([nodes.domains(c.key) for c in constraints], members)
        pods = [
            DomainPods(c, counting, _matching(c, pod.namespace, nodes), pod.labels)
            for c, counting in zip(constraints, found, strict=True)
        ]
        state.write(self.name, _State(constraints, pods))
        return None, SUCCESS

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo) -> None:
        self._move(state, pod, added, node, 1)

    def remove_pod(self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo) -> None:
        self._move(state, pod, removed, node, -1)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        found: _State = state.read(self.name)
        return next((_REJECTIONS[code] for p in found.pods if (code := p.of_node(node.labels))), SUCCESS)

    def reach(self, pod: PodInfo, other: PodInfo) -> frozenset[str] | None:
        if other.namespace != pod.namespace:
            return frozenset()
        # A pod in another domain can only increase the smallest number of pods.
        return frozenset(c.key for c in self._constraints(pod, "DoNotSchedule") if c.selects(other.labels))

    def filter_fitting(self, state: CycleState, pod: PodInfo, nodes: Columns, ok: Bools) -> Bools:
        found: _State = state.read(self.name)
        fits = ok
        for p in found.pods:
            fits = fits & (p.of_nodes() == 0)
        return fits

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Status:
        constraints = self._constraints(pod, "ScheduleAnyway")
        if not constraints:
            return SKIP
        state.write(f"{self.name}/score", _Scores(constraints, nodes))
        return SUCCESS

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        found: _Scores = state.read(f"{self.name}/score")
        if not found.by_node:
            columns = self._cluster.columns
            names = [each.name for each in found.nodes]
            fits = np.array([columns.index[name] for name in names], dtype=np.intp)
            values = self.score_fitting(state, pod, columns, fits).tolist()
            found.by_node = dict(zip(names, values, strict=True))
        return found.by_node[node.name]

    def score_fitting(self, state: CycleState, pod: PodInfo, nodes: Columns, fits: Indices) -> Ints:
        found: _Scores = state.read(f"{self.name}/score")
        preferences = [
            Preference(c, nodes.domains(c.key), _matching(c, pod.namespace, nodes), _members(c, pod, nodes))
            for c in found.constraints
        ]
        return scores(preferences, fits, bool(pod.spread) or self._args.defaulting_type != "System")

    def interests(self) -> Sequence[Interest]:
        return (
            Interest(
                PODS, ActionType.ADD | ActionType.DELETE | ActionType.POD_LABEL | ActionType.TOLERATION, self._pod_helps
            ),
            Interest(
                NODES, ActionType.ADD | ActionType.DELETE | ActionType.NODE_LABEL | ActionType.TAINT, self._node_helps
            ),
        )

    def _constraints(self, pod: PodInfo, when: str) -> list[SpreadConstraint]:
        """The pod's constraints with that `whenUnsatisfiable`."""
        if pod.spread:
            return [of_pod(c, pod.labels) for c in pod.spread if c.when_unsatisfiable == when]
        defaults = [c for c in self._args.defaults if c.when_unsatisfiable == when]
        chosen = default_selectors(pod.pod, self._cluster.model) if defaults else ()
        return [with_selectors(c, chosen) for c in defaults] if chosen else []

    def _move(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo, sign: int) -> None:
        found: _State = state.read(self.name)
        if other.namespace != pod.namespace or not _has_keys(node.labels, found.constraints):
            return
        selector, required = pod.pod.spec.node_selector, required_of(pod.node_affinity)
        for c, pods in zip(found.constraints, found.pods, strict=True):
            if c.selects(other.labels) and includes(node.node, c, selector, required, pod.tolerations):
                pods.move(node.labels[c.key], sign)

    def _pod_helps(self, pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> bool:
        own = new is not None and new.pod.metadata.uid == pod.pod.metadata.uid
        there = new if new is not None else old
        placed = there is not None and (there.node or there.pod.status.nominated_node_name)
        if not own and (not placed or any(p is not None and p.namespace != pod.namespace for p in (old, new))):
            return False
        constraints = self._constraints(pod, "DoNotSchedule")
        if own and old is not None and new is not None and old.tolerations != new.tolerations:
            return any(c.taints_count for c in constraints)
        before = [old is not None and c.selects(old.labels) for c in constraints]
        after = [new is not None and c.selects(new.labels) for c in constraints]
        return before != after

    def _node_helps(self, pod: PodInfo, old: Node | None, new: Node | None) -> bool:
        constraints = self._constraints(pod, "DoNotSchedule")
        before = (old.metadata.labels or {}) if old is not None else {}
        after = (new.metadata.labels or {}) if new is not None else {}
        matched = old is not None and _has_keys(before, constraints)
        matches = new is not None and _has_keys(after, constraints)
        if old is None or new is None:
            return matched or matches
        moved = any(before.get(c.key) != after.get(c.key) for c in constraints)
        return matched != matches or (matches and (moved or (old.spec.taints or []) != (new.spec.taints or [])))


def _has_keys(labels: Mapping[str, str], constraints: Sequence[SpreadConstraint]) -> bool:
    return all(c.key in labels for c in constraints)


def _members(c: SpreadConstraint, pod: PodInfo, nodes: Columns) -> Bools:
    """The nodes that count as members of domains."""
    selector, required = pod.pod.spec.node_selector, required_of(pod.node_affinity)
    return nodes.of_model(included(nodes.model, c, selector, required, pod.tolerations))


def _matching(c: SpreadConstraint, namespace: str, nodes: Columns) -> Ints:
    """Per node, the pods that a constraint selects and that are not being deleted."""
    if not c.counts:
        return np.zeros(len(nodes), dtype=np.int64)
    return nodes.count((msgspec.msgpack.encode(c.selectors), namespace), partial(_matching_pods, c, namespace))


def _matching_pods(c: SpreadConstraint, namespace: str, node: NodeInfo) -> int:
    return sum(p.namespace == namespace and not p.terminating and c.selects(p.labels) for p in node.pods.values())
