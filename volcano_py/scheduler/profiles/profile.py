"""Profile: a scheduler name and its plugins, run point by point. Kubernetes: framework/runtime/framework.go."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from volcano_py.scheduler.framework.held_nodes import OWNER, TEXT
from volcano_py.scheduler.framework.search.node_rules import DOMAIN, STATIC
from volcano_py.scheduler.profiles.attempts.class_views import PodClassViews, by_class, first_rejection
from volcano_py.scheduler.profiles.attempts.feasible import Feasible, fitting
from volcano_py.scheduler.profiles.attempts.node_sample import NodeSample
from volcano_py.scheduler.profiles.attempts.scoring import in_range, normalized
from volcano_py.scheduler.profiles.columns import NodesAt
from volcano_py.scheduler.profiles.configuration import ProfileConfig, ProfilesConfiguration, ProfilesConfigurationError
from volcano_py.scheduler.profiles.faults import Pending, PluginFault, contained, expect, raised, stop
from volcano_py.scheduler.profiles.plugin_api.cycle_state import CycleState
from volcano_py.scheduler.profiles.plugin_api.events import (
    OBJECTS,
    ActionType,
    ClusterEvent,
    Interest,
    Kind,
    check_interests,
)
from volcano_py.scheduler.profiles.plugin_api.extension_points import (
    Binder,
    Filter,
    NodesFilter,
    Observer,
    Permit,
    PodGroupPostFilter,
    PostBind,
    PostFilter,
    PostFilterResult,
    PreBind,
    PreEnqueue,
    PreFilter,
    ProfilePlugin,
    QueueSort,
    Reserve,
    Reviewer,
    Score,
)
from volcano_py.scheduler.profiles.plugin_api.handle import Handle, World
from volcano_py.scheduler.profiles.plugin_api.node_info import NodeInfo
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.plugin_api.status import SUCCESS, Code, Status, unresolvable, unschedulable
from volcano_py.scheduler.profiles.plugins.fit import NodeResourcesFit
from volcano_py.scheduler.rules.arrays import Ints

_HELD = unresolvable(TEXT).by(OWNER)
SortKey = tuple[tuple[float, str], ...]
"""The type of a sort key. Numbers sort before texts, so that any two keys can be compared."""


class PreFiltered(NamedTuple):
    """The combined result of the PreFilter plugins."""

    only: set[str] | None
    """The nodes that can run the pod; None: any."""
    status: Status
    named_by: set[str]
    """The plugins that returned nodes."""


class Profile:
    """The plugins of one profile, ready to run on a cluster. A plugin that fails raises PluginFault here, unless a
    method documents otherwise."""

    def __init__(self, config: ProfileConfig, whole: ProfilesConfiguration, world: World) -> None:
        self.name = config.name
        self._cluster = world.cluster
        handle = Handle(world, self)
        named = {n for names in config.points.values() for n in names}
        made: dict[str, ProfilePlugin] = {}
        for name, registration in whole.registry.items():
            if name in named:
                try:
                    made[name] = registration.make(config.arguments[name], handle)
                    made[name].name = name
                except Exception as e:
                    raise ProfilesConfigurationError(f"profile {self.name}, pluginConfig {name}: {e}") from e

        def at(point: str) -> list[Any]:
            return [made[n] for n in config.points[point]]

        self._queue_sort: QueueSort = at("queueSort")[0]
        self._pre_enqueue: list[PreEnqueue] = at("preEnqueue")
        self._pre_filter: list[PreFilter] = at("preFilter")
        self._filter: list[Filter] = [f for f in at("filter") if not isinstance(f, NodesFilter)]
        self._nodes_filter: list[NodesFilter] = [f for f in at("filter") if isinstance(f, NodesFilter)]
        self._with_add_pod = [p for p in self._pre_filter if type(p).add_pod is not PreFilter.add_pod]
        self._with_remove_pod = [p for p in self._pre_filter if type(p).remove_pod is not PreFilter.remove_pod]
        self._about_pods = [f for f in self._filter if f.scope is not STATIC]
        self._post_filter: list[PostFilter] = at("postFilter")
        self.pod_group_post_filter: list[PodGroupPostFilter] = at("podGroupPostFilter")
        self._score: list[Score] = at("score")
        self._weights: Mapping[str, int] = config.weights
        self._far_filters = [f for f in self._filter if f.scope is DOMAIN]
        self._far_scores = [s for s in self._score if not by_class(s)]
        weighted = [(s, self._weights.get(s.name, 1)) for s in self._score]
        self.sample = NodeSample(config.percentage)
        self._views = PodClassViews(self._cluster, self._filter, weighted)
        self.reserve: list[Reserve] = at("reserve")
        self.permit: list[Permit] = at("permit")
        self.pre_bind: list[PreBind] = at("preBind")
        self.bind: list[Binder] = at("bind")
        self.post_bind: list[PostBind] = at("postBind")
        handle.reviewers = [p for p in made.values() if isinstance(p, Reviewer)]
        self.plugins: Mapping[str, ProfilePlugin] = made
        self.config = config
        fit = made.get("NodeResourcesFit")
        self.placement_strategy = fit.strategy if isinstance(fit, NodeResourcesFit) else []
        """The resources, with weights, by which placements of groups are compared."""
        self._fit = fit if isinstance(fit, NodeResourcesFit) and fit in self._filter else None
        self._observers = [p for p in made.values() if isinstance(p, Observer)]
        self.interests = {n: self._interests(p) for n, p in made.items()}
        self.interests[OWNER] = (Interest(frozenset({Kind.NODE}), ActionType.TAINT),)
        self.reads = {kind for p in made.values() for kind in p.reads}
        """The kinds that its plugins read in addition to nodes and pods."""
        self.repeatable = not self._observers and not self.reads
        """Whether the model decides a search, with what `attempts.search_record` has: no plugin keeps a state of its
        own, or reads objects that the model does not have."""

    def _interests(self, plugin: ProfilePlugin) -> Sequence[Interest]:
        try:
            found = plugin.interests()
            check_interests(found)
            if not plugin.reads and any(i.kinds == OBJECTS for i in found):
                raise ValueError(
                    "an Interest in OBJECTS matches nothing, because the plugin declares no kinds in `reads`"
                )
        except Exception as e:
            text = str(e) if isinstance(e, ValueError) else f"interests raised {type(e).__name__}: {e}"
            raise ProfilesConfigurationError(f"profile {self.name}, plugin {plugin.name}: {text}") from e
        return found

    @property
    def observes(self) -> bool:
        """Whether a plugin requires all events of nodes or pods."""
        return any(p.kinds - OBJECTS for p in self._observers)

    def observe(self, event: ClusterEvent) -> None:
        """Pass an event to the plugins that keep caches; a fault is logged."""
        for plugin in self._observers:
            try:
                if event.kind in plugin.kinds:
                    plugin.observe(event)
            except Exception as e:
                raised(plugin.name, "event", e)

    def pre_enqueue(self, pod: PodInfo) -> Status:
        """The first rejection, or success. A fault is an error status."""
        for plugin in self._pre_enqueue:
            try:
                with contained(plugin.name, "PreEnqueue"):
                    status = expect(plugin.pre_enqueue(pod), Status, plugin.name, "PreEnqueue")
            except PluginFault as fault:
                return fault.status
            if status.code is Code.ERROR:
                return PluginFault(plugin.name, "PreEnqueue", status.message).status
            if not status.ok:
                return status.by(plugin.name)
        return SUCCESS

    def sort_key(self, pod: PodInfo, queued_at: float) -> SortKey:
        """The position of the pod in the active queue."""
        plugin = self._queue_sort
        with contained(plugin.name, "QueueSort"):
            key = expect(plugin.sort_key(pod, queued_at), tuple, plugin.name, "QueueSort")
            return tuple((math.inf, x) if isinstance(x, str) else (float(x), "") for x in key)

    def pre_filter(self, state: CycleState, pod: PodInfo) -> PreFiltered:
        """Call all plugins, until one returns that evictions do not help, or fails."""
        names: set[str] | None = None
        by: set[str] = set()
        rejected = SUCCESS
        for plugin in self._pre_filter:
            try:
                only, status = plugin.pre_filter(state, pod)
            except Exception as e:
                raise raised(plugin.name, "PreFilter", e) from e
            if type(status) is not Status:
                expect(status, Status, plugin.name, "PreFilter")
            if status.code is Code.SKIP:
                state.skip_filter.add(plugin.name)
                continue
            if not status.ok:
                if status.code is not Code.UNSCHEDULABLE:
                    return PreFiltered(None, status.by(plugin.name), by)
                rejected = status.by(plugin.name)
                continue
            if only is not None:
                by.add(plugin.name)
                names = set(only) if names is None else names & set(only)
                if not names:
                    return PreFiltered(names, unresolvable(_no_nodes_left(by)), by)
        return PreFiltered(names, rejected, by)

    def feasible(self, state: CycleState, pod: PodInfo, only: set[str] | None) -> Feasible:
        """The nodes that fit. `only`: the candidates; None: all nodes."""
        view = self._views.of(state, pod)
        ok = view.ok
        columns = view.columns
        index = columns.index
        if held := self._cluster.model.held:
            ok = ok & ~np.array([name in held for name in index], dtype=np.bool_)
        own = index.get(self._cluster.nominated_node(pod))
        if own is not None:  # the view counts the pod's own nomination
            ok = ok.copy()
            ok[own] = self.filter_with_nominated(state, pod, view.columns.infos[own]).ok
        if only is not None:
            named = np.zeros(len(ok), dtype=np.bool_)
            named[[index[name] for name in only if name in index]] = True
            ok = ok & named
        if not self.looks_further(state):
            state.per_node = view.per_node
        else:
            ok, complete = fitting(self._active(self._far_filters, state), state, pod, view.columns, ok)
            if not complete:
                return self._evaluated_one_by_one(state, pod, Feasible(view, ok))
            for i in (columns.index.get(name, -1) for name in self._cluster.nominated_nodes()):
                if i >= 0 and ok[i]:
                    ok[i] = self.filter_with_nominated(state, pod, columns.infos[i]).ok
        if self.sample.all_of(len(ok)):
            return Feasible(view, ok)
        return Feasible(view, ok, {}, self.sample.take(np.flatnonzero(ok), len(ok)))

    def _evaluated_one_by_one(self, state: CycleState, pod: PodInfo, found: Feasible) -> Feasible:
        """Those of the nodes that all filters accept, called for one node after the other."""
        rejected: dict[str, Status] = {}
        infos = found.view.columns.infos

        def fits(i: int) -> bool:
            status = self.filter_with_nominated(state, pod, infos[i])
            stop(status, "Filter")
            if not status.ok:
                rejected[infos[i].name] = status
            return status.ok

        nodes = self.sample.take(found.nodes, len(found.ok), fits)
        return Feasible(found.view, found.ok, rejected, nodes)

    def filter_nodes(self, state: CycleState, pod: PodInfo, found: Feasible) -> Feasible:
        """Those of the nodes that the filters which evaluate all nodes at once accept as well."""
        if not self._nodes_filter or not found.count:
            return found
        left = {found.view.columns.infos[i].name: i for i in found.nodes.tolist()}
        rejected = dict(found.rejected)
        for plugin in self._nodes_filter:
            if left and plugin.name not in state.skip_filter:
                nodes = [found.view.columns.infos[i] for i in left.values()]
                for name, status in self._rejected_by(plugin, state, pod, nodes).items():
                    del left[name]
                    rejected[name] = status
        return Feasible(found.view, found.ok, rejected, np.array(list(left.values()), dtype=np.intp))

    def passes_nodes_filters(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        """The result of the filters that evaluate all nodes at once for a single node."""
        for plugin in self._nodes_filter:
            if plugin.name not in state.skip_filter:
                for status in self._rejected_by(plugin, state, pod, [node]).values():
                    return status
        return SUCCESS

    def _rejected_by(
        self, plugin: NodesFilter, state: CycleState, pod: PodInfo, nodes: Sequence[NodeInfo]
    ) -> dict[str, Status]:
        with contained(plugin.name, "Filter"):
            found = plugin.filter_nodes(state, pod, nodes)
        if isinstance(found, Status):
            stop(found.by(plugin.name), "Filter")
            return {} if found.ok else {n.name: found.by(plugin.name) for n in nodes}
        with contained(plugin.name, "Filter"):
            for name in found.keys() - {n.name for n in nodes}:
                raise PluginFault(plugin.name, "Filter", f"{name!r} is not among the nodes of the call")
            return {n: expect(s, Status, plugin.name, "Filter").by(plugin.name) for n, s in found.items()}

    def rejections(self, state: CycleState, pod: PodInfo, found: Feasible, only: set[str] | None) -> dict[str, Status]:
        """Why each node does not fit, if none does; nodes that are not in `only` may be missing."""
        columns = found.view.columns
        if self.looks_further(state):
            candidates = (n for n in columns.infos if n.name not in found.rejected and (only is None or n.name in only))
            others = {n.name: self.filter_with_nominated(state, pod, n) for n in candidates}
            return {n: found.rejected.get(n) or others[n] for n in columns.index if n in found.rejected or n in others}
        statuses = self._views.rejections(found.view, state, pod)
        rejected = {name: s for name, s in zip(columns.index, statuses, strict=True) if s is not None}
        own = self._cluster.nominated_node(pod)
        if own in columns.index:
            rejected[own] = self.filter_with_nominated(state, pod, columns.infos[columns.index[own]])
        rejected |= {name: _HELD for name in columns.index if name in self._cluster.model.held}
        return {**rejected, **found.rejected}

    def looks_further(self, state: CycleState) -> bool:
        """Whether filters that evaluate more than one node take part for a pod."""
        return any(f.name not in state.skip_filter for f in self._far_filters)

    def reach(self, pod: PodInfo, other: PodInfo, skipped: Collection[str]) -> frozenset[str] | None:
        """From where another pod can change the results for a pod, see `Filter.reach`. `skipped`: the filters that
        PreFilter has skipped for the pod."""
        keys: set[str] = set()
        for plugin in self._far_filters:
            own = type(plugin).reach is not Filter.reach
            if own or plugin.name not in skipped:
                with contained(plugin.name, "Filter"):
                    found = plugin.reach(pod, other)
                if found is None:
                    return None
                keys |= found
        return frozenset(keys)

    def filter_with_nominated(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        """Run the filters with the pods nominated to the node (of the same or higher priority) and without; both must
        pass."""
        return self._with_nominated(self._active(self._filter, state), state, pod, node)

    def accepts_node(self, pod: PodInfo, node: NodeInfo) -> bool:
        """Whether the STATIC filters accept the Node object for a pod, whatever runs there."""
        if node.name in self._cluster.model.held:
            return False
        return first_rejection([f for f in self._filter if f.scope is STATIC], CycleState(), pod, node).ok

    def counted_requests(self, pod: PodInfo) -> Mapping[str, int]:
        """What a pod requests of the resources that each node must have free, with the pod itself."""
        return self._fit.counted_requests(pod) if self._fit is not None else {}

    def still_fits(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> bool:
        """The same for a node that passed with fewer pods on it: STATIC filters need no call."""
        return self._with_nominated(self._active(self._about_pods, state), state, pod, node).ok

    def _active(self, filters: Sequence[Filter], state: CycleState) -> Sequence[Filter]:
        return [f for f in filters if f.name not in state.skip_filter]

    def _with_nominated(self, filters: Sequence[Filter], state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        if node.name in self._cluster.model.held:
            return _HELD
        coming = [p for p in self._cluster.nominated(node.name) if p.priority >= pod.priority and p.key != pod.key]
        if coming:
            with_them, copy = state.clone(), node.clone()
            for other in coming:
                copy.add(other)
                self.add_pod(with_them, pod, other, copy)
            status = first_rejection(filters, with_them, pod, copy)
            if not status.ok:
                return status
        return first_rejection(filters, state, pod, node)

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo) -> None:
        for plugin in self._with_add_pod:
            if plugin.name not in state.skip_filter:
                with contained(plugin.name, "AddPod"):
                    plugin.add_pod(state, pod, added, node)

    def remove_pod(self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo) -> None:
        for plugin in self._with_remove_pod:
            if plugin.name not in state.skip_filter:
                with contained(plugin.name, "RemovePod"):
                    plugin.remove_pod(state, pod, removed, node)

    def post_filter(self, state: CycleState, pod: PodInfo, rejected: dict[str, Status]) -> PostFilterResult | None:
        """The first success, or the combined result of all plugins; None without plugins."""
        if not self._post_filter:
            return None
        reasons: list[str] = []
        nominated: str | None = None
        for plugin in self._post_filter:
            with contained(plugin.name, "PostFilter"):
                result = expect(plugin.post_filter(state, pod, rejected), PostFilterResult, plugin.name, "PostFilter")
                if result.nominated and result.nominated not in self._cluster.nodes:
                    raise PluginFault(
                        plugin.name, "PostFilter", f"the nominated node {result.nominated!r} does not exist"
                    )
            if result.status.code in (Code.PENDING, Code.ERROR):
                stop(result.status.by(plugin.name), "PostFilter")
            if result.status.ok or result.status.code is not Code.UNSCHEDULABLE:
                return result
            reasons += result.status.reasons
            nominated = result.nominated if result.nominated is not None else nominated
        return PostFilterResult(unschedulable(*reasons), nominated)

    def best(self, state: CycleState, pod: PodInfo, found: Feasible) -> NodeInfo:
        """The node with the highest score, the first of equals."""
        view = found.view
        if view.fault is not None:
            raise view.fault
        active = self._pre_scored(state, pod, found)
        if found.in_order and not active and not view.relative:
            return view.columns.infos[int(np.where(found.ok, view.scores, -1).argmax())]
        return view.columns.infos[int(found.nodes[int(self._sums(state, pod, found, active).argmax())])]

    def scores(self, state: CycleState, pod: PodInfo, found: Feasible) -> Ints:
        """The weighted sum of the scores of each node that fits, in their order."""
        return self._sums(state, pod, found, self._pre_scored(state, pod, found))

    def _pre_scored(self, state: CycleState, pod: PodInfo, found: Feasible) -> list[Score]:
        """The scores that depend on other nodes and concern the pod."""
        nodes = NodesAt(found.view.columns.infos, lambda: found.nodes, found.count)
        active = []
        for plugin in filter(state.concerns, self._far_scores):
            with contained(plugin.name, "PreScore"):
                status = expect(plugin.pre_score(state, pod, nodes), Status, plugin.name, "PreScore")
            if status.code is Code.PENDING:
                raise Pending
            if status.ok:
                active.append(plugin)
            elif status.code is not Code.SKIP:
                raise PluginFault(plugin.name, "PreScore", status.message)
        return active

    def _sums(self, state: CycleState, pod: PodInfo, found: Feasible, active: Sequence[Score]) -> Ints:
        view = found.view
        total: Ints = view.scores[found.nodes]
        for score, raw, weight in view.relative:
            with contained(score.name, "NormalizeScore"):
                total += weight * in_range(score.normalize_columns(raw[found.nodes]), score.name)
        for plugin in active:
            total += self._weights.get(plugin.name, 1) * normalized(plugin, state, pod, view.columns, found.nodes)
        return total


def _no_nodes_left(by: set[str]) -> str:
    if len(by) == 1:
        return f"node(s) didn't satisfy plugin {next(iter(by))}"
    return f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(by))}] simultaneously"
