"""Profile: a scheduler name and its plugins, run point by point. Kubernetes: framework/runtime/framework.go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from volcano_py.scheduler.profiles.cluster import Cluster
from volcano_py.scheduler.profiles.configuration import ProfileConfig
from volcano_py.scheduler.profiles.cycle_state import CycleState
from volcano_py.scheduler.profiles.events import Interest
from volcano_py.scheduler.profiles.extension_points import (
    MAX_SCORE,
    Bind,
    Filter,
    Permit,
    PostBind,
    PostFilter,
    PostFilterResult,
    PreBind,
    PreEnqueue,
    PreFilter,
    QueueSort,
    Reserve,
    Score,
)
from volcano_py.scheduler.profiles.node_info import NodeInfo
from volcano_py.scheduler.profiles.pod_info import PodInfo
from volcano_py.scheduler.profiles.registry import REGISTRY
from volcano_py.scheduler.profiles.status import SUCCESS, Code, Status, unresolvable, unschedulable


class Profile:
    """The plugins of one profile, ready to run on a cluster."""

    def __init__(self, config: ProfileConfig, cluster: Cluster) -> None:
        self.name = config.name
        self._cluster = cluster
        named = {n for names in config.points.values() for n in names}
        made = {n: r.make(config.arguments[n], cluster, self) for n, r in REGISTRY.items() if n in named}

        def at(point: str) -> list[Any]:
            return [made[n] for n in config.points[point]]

        self.queue_sort: QueueSort = at("queueSort")[0]
        self._pre_enqueue: list[PreEnqueue] = at("preEnqueue")
        self._pre_filter: list[PreFilter] = at("preFilter")
        self._filter: list[Filter] = at("filter")
        self._post_filter: list[PostFilter] = at("postFilter")
        self._score: list[Score] = at("score")
        self._weights: Mapping[str, int] = config.weights
        self.reserve: list[Reserve] = at("reserve")
        self.permit: list[Permit] = at("permit")
        self.pre_bind: list[PreBind] = at("preBind")
        self.bind: list[Bind] = at("bind")
        self.post_bind: list[PostBind] = at("postBind")
        self.interests: dict[str, Sequence[Interest]] = {n: p.interests() for n, p in made.items()}

    def pre_enqueue(self, pod: PodInfo) -> Status:
        """The first refusal, or success."""
        for plugin in self._pre_enqueue:
            status = plugin.pre_enqueue(pod)
            if not status.ok:
                return status.by(plugin.name)
        return SUCCESS

    def pre_filter(self, state: CycleState, pod: PodInfo) -> tuple[set[str] | None, Status, set[str]]:
        """(the only nodes that can hold the pod, or None for all; status; the plugins that named nodes)."""
        names: set[str] | None = None
        by: set[str] = set()
        refused = SUCCESS
        for plugin in self._pre_filter:
            only, status = plugin.pre_filter(state, pod)
            if status.code is Code.SKIP:
                state.skip_filter.add(plugin.name)
                continue
            if not status.ok:
                if status.code is not Code.UNSCHEDULABLE:
                    return None, status.by(plugin.name), by
                refused = status.by(plugin.name)
                continue
            if only is not None:
                by.add(plugin.name)
                names = set(only) if names is None else names & set(only)
                if not names:
                    return names, unresolvable(_no_nodes_left(by)), by
        return names, refused, by

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        """The first refusal of a node, or success."""
        for plugin in self._filter:
            if plugin.name not in state.skip_filter:
                status = plugin.filter(state, pod, node)
                if not status.ok:
                    return status.by(plugin.name)
        return SUCCESS

    def filter_with_nominated(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        """The filters must pass with the pods nominated to the node (of the same or higher priority) and without."""
        coming = [p for p in self._cluster.nominated(node.name) if p.priority >= pod.priority and p.key != pod.key]
        if coming:
            with_them, copy = state.clone(), node.clone()
            for other in coming:
                copy.add(other)
                self.add_pod(with_them, pod, other, copy)
            status = self.filter(with_them, pod, copy)
            if not status.ok:
                return status
        return self.filter(state, pod, node)

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo) -> None:
        for plugin in self._pre_filter:
            if plugin.name not in state.skip_filter:
                plugin.add_pod(state, pod, added, node)

    def remove_pod(self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo) -> None:
        for plugin in self._pre_filter:
            if plugin.name not in state.skip_filter:
                plugin.remove_pod(state, pod, removed, node)

    def post_filter(self, state: CycleState, pod: PodInfo, refused: dict[str, Status]) -> PostFilterResult | None:
        """The first success, or what all plugins answered together; None without plugins."""
        if not self._post_filter:
            return None
        reasons: list[str] = []
        nominated: str | None = None
        for plugin in self._post_filter:
            result = plugin.post_filter(state, pod, refused)
            if result.status.ok or result.status.code is not Code.UNSCHEDULABLE:
                return result
            reasons += result.status.reasons
            nominated = result.nominated if result.nominated is not None else nominated
        return PostFilterResult(unschedulable(*reasons), nominated)

    def best(self, state: CycleState, pod: PodInfo, nodes: Sequence[NodeInfo]) -> NodeInfo:
        """The node with the highest score, the first of equals. Raises ValueError for scores outside 0–100."""
        totals = dict.fromkeys((n.name for n in nodes), 0)
        active = []
        for plugin in self._score:
            status = plugin.pre_score(state, pod, nodes)
            if status.ok:
                active.append(plugin)
            elif status.code is not Code.SKIP:
                raise ValueError(f'running PreScore plugin "{plugin.name}": {status.message}')
        for plugin in active:
            scores = {n.name: plugin.score(state, pod, n) for n in nodes}
            plugin.normalize(state, pod, scores)
            for name, value in scores.items():
                if not 0 <= value <= MAX_SCORE:
                    raise ValueError(
                        f'plugin "{plugin.name}" returns an invalid score {value}, it should in the range of [0, 100]'
                    )
                totals[name] += value * self._weights.get(plugin.name, 1)
        return max(nodes, key=lambda n: totals[n.name])


def _no_nodes_left(by: set[str]) -> str:
    if len(by) == 1:
        return f"node(s) didn't satisfy plugin {next(iter(by))}"
    return f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(by))}] simultaneously"
