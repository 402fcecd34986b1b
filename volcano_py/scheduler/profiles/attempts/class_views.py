"""Class views: the results of the rules that evaluate one node at a time, for a class of equal pods, per node.

A view is computed by one pass over all nodes and then updated for the nodes that have changed, so that equal pods cost
little more than the search for the highest score. Rules that depend on more (scope DOMAIN) are called for every pod;
see `Profile`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from volcano_py.scheduler.framework.search.node_rules import DOMAIN, LOCAL, STATIC
from volcano_py.scheduler.model.jobs.spec_class import SpecClass
from volcano_py.scheduler.profiles.cluster import ProfileCluster
from volcano_py.scheduler.profiles.columns import AnyColumns, Columns, SomeColumns
from volcano_py.scheduler.profiles.faults import PluginFault, contained, expect, raised
from volcano_py.scheduler.profiles.plugin_api.cycle_state import CycleState
from volcano_py.scheduler.profiles.plugin_api.extension_points import MAX_SCORE, Filter, Score
from volcano_py.scheduler.profiles.plugin_api.node_info import NodeInfo
from volcano_py.scheduler.profiles.plugin_api.pod_info import PodInfo
from volcano_py.scheduler.profiles.plugin_api.status import SUCCESS, Code, Status
from volcano_py.scheduler.rules.arrays import Bools, Indices, Ints

_FEW = 6
"""Up to this number, changed nodes are evaluated one by one; more are evaluated in one vector pass."""
_MOST_VIEWS = 256
_Key = tuple[SpecClass, int, frozenset[str], bool]


class PodClassView:
    """The results for one class of pods. `filters` and `scores` are the plugins that take part."""

    def __init__(self, columns: Columns, filters: Sequence[Filter], scores: Sequence[tuple[Score, int]]) -> None:
        self.columns = columns
        self.filters = filters
        self.local_filters = [f for f in filters if f.scope is LOCAL]
        self.local_scores = [(s, weight) for s, weight in scores if s.scope is LOCAL]
        self.generation = columns.generation
        self.seen = len(columns.log)
        """The position in the columns' log up to which changes are included."""
        self.ok: Bools
        """The nodes that these filters accept."""
        self.fits_static: Bools
        self.scores_static: Ints
        self.scores: Ints
        """The weighted sum of the scores of a node that do not depend on other nodes."""
        self.relative: list[tuple[Score, Ints, int]] = []
        """Raw values of the scores that are normalized over the nodes that fit, with their weights."""
        self.rejections: list[Status | None] = [None] * len(columns)
        """Why nodes are rejected; None for nodes that fit, and for those in `unknown`."""
        self.unknown: set[int] = set()
        """Columns of rejected nodes whose reasons are not computed yet."""
        self.statuses: dict[Status, Status] = {}
        """Equal statuses as one object, so that they are counted fast."""
        self.per_node: dict[str, Any] = {}
        """Values that plugins keep for each node until it changes."""
        self.fault: PluginFault | None = None
        """The fault of a score that is out of range."""


class PodClassViews:
    """The views of a profile. `filters` and `scores` (with weights) in their order."""

    def __init__(self, cluster: ProfileCluster, filters: Sequence[Filter], scores: Sequence[tuple[Score, int]]) -> None:
        self._cluster = cluster
        self._filters = [f for f in filters if f.scope is not DOMAIN]
        self._scores = [(s, weight) for s, weight in scores if by_class(s)]
        self._views: dict[_Key, PodClassView] = {}

    def of(self, state: CycleState, pod: PodInfo) -> PodClassView:
        """The view of a pod's class, up to date."""
        columns = self._cluster.columns
        filters = [f for f in self._filters if f.name not in state.skip_filter]
        names = frozenset(f.name for f in filters)
        key = (self._cluster.class_of(pod), pod.priority, names, self._cluster.without_images)
        view = self._views.get(key)
        if view is None or view.columns is not columns or view.generation != columns.generation:
            self._views.pop(key, None)
            if len(self._views) >= _MOST_VIEWS:
                del self._views[next(iter(self._views))]
            view = self._views[key] = self._make(state, pod, columns, filters)
        elif view.seen != len(columns.log):
            self._update(view, state, pod)
        return view

    def rejections(self, view: PodClassView, state: CycleState, pod: PodInfo) -> Sequence[Status | None]:
        """Why the view's filters reject nodes, by column; None for nodes that they accept."""
        for i in view.unknown:
            status = self._status(view, state, pod, view.columns.infos[i])
            view.rejections[i] = view.statuses.setdefault(status, status)
        view.unknown.clear()
        return view.rejections

    def _make(self, state: CycleState, pod: PodInfo, columns: Columns, filters: Sequence[Filter]) -> PodClassView:
        active = []
        for score, weight in self._scores:
            with contained(score.name, "PreScore"):
                status = expect(score.pre_score(state, pod, columns.infos), Status, score.name, "PreScore")
            if status.ok:
                active.append((score, weight))
            elif status.code is not Code.SKIP:
                raise PluginFault(score.name, "PreScore", status.message)
        view = PodClassView(columns, filters, active)
        view.fits_static = np.ones(len(columns), dtype=np.bool_)
        for f in filters:
            if f.scope is STATIC:
                view.fits_static &= _accepted(f, state, pod, columns)
        view.scores_static = np.zeros(len(columns), dtype=np.int64)
        for score, weight in active:
            if score.normalizes():
                raw = _scored(score, state, pod, columns)
                if raw.size and raw.min() != raw.max():  # equal scores have no effect
                    view.relative.append((score, raw, weight))
            elif score.scope is STATIC:
                view.scores_static += weight * self._valid(view, score, _scored(score, state, pod, columns))
        view.ok = view.fits_static.copy()
        view.scores = view.scores_static.copy()
        self._look(view, state, pod, np.arange(len(columns)), columns)
        return view

    def _update(self, view: PodClassView, state: CycleState, pod: PodInfo) -> None:
        columns = view.columns
        changed = list(dict.fromkeys(columns.log[view.seen :]))
        view.seen = len(columns.log)
        view.fault = None
        if view.per_node:
            for i in changed:
                view.per_node.pop(columns.infos[i].name, None)
        if len(changed) > _FEW:
            nodes = np.array(changed, dtype=np.intp)
            self._look(view, state, pod, nodes, SomeColumns(columns, nodes))
            return
        for i in changed:
            node = columns.infos[i]
            rules = view.local_filters if view.fits_static[i] else view.filters
            status = self._status(view, state, pod, node, rules)
            view.ok[i] = status.ok
            view.rejections[i] = None if status.ok else view.statuses.setdefault(status, status)
            view.unknown.discard(i)
            total = int(view.scores_static[i])
            for score, weight in view.local_scores:
                with contained(score.name, "Score"):
                    value = expect(score.score(state, pod, node), int, score.name, "Score")
                if not 0 <= value <= MAX_SCORE:
                    view.fault = _out_of_range(score, value)
                total += weight * value
            view.scores[i] = total

    def _look(self, view: PodClassView, state: CycleState, pod: PodInfo, nodes: Indices, columns: AnyColumns) -> None:
        """Evaluate the LOCAL rules for some nodes, in one pass."""
        ok = view.fits_static[nodes]
        for f in view.local_filters:
            ok &= _accepted(f, state, pod, columns)
        if nominated := self._cluster.nominated_nodes():
            infos = view.columns.infos
            for at in [at for at, i in enumerate(nodes.tolist()) if ok[at] and infos[i].name in nominated]:
                ok[at] = self._status(view, state, pod, infos[nodes[at]]).ok
        view.ok[nodes] = ok
        rejected = nodes[~ok].tolist()
        view.unknown.difference_update(nodes.tolist())
        view.unknown.update(rejected)
        for i in nodes[ok].tolist():
            view.rejections[i] = None
        total = view.scores_static[nodes]
        for score, weight in view.local_scores:
            total = total + weight * self._valid(view, score, _scored(score, state, pod, columns))
        view.scores[nodes] = total

    def _status(
        self,
        view: PodClassView,
        state: CycleState,
        pod: PodInfo,
        node: NodeInfo,
        filters: Sequence[Filter] | None = None,
    ) -> Status:
        """The first rejection of a node, with the pods that are nominated to it and without, or success.

        `filters`: those to call; None: all of the view.
        """
        filters = view.filters if filters is None else filters
        coming = [p for p in self._cluster.nominated(node.name) if p.priority >= pod.priority]
        if coming:
            crowded = node.clone()
            for other in coming:
                crowded.add(other)
            status = first_rejection(filters, state, pod, crowded)
            if not status.ok:
                return status
        return first_rejection(filters, state, pod, node)

    def _valid(self, view: PodClassView, score: Score, values: Ints) -> Ints:
        invalid = values[(values < 0) | (values > MAX_SCORE)]
        if len(invalid):
            view.fault = _out_of_range(score, invalid[0])
        return values


def by_class(score: Score) -> bool:
    """Whether the results of a score are kept for equal pods."""
    if not score.normalizes():
        return score.scope is not DOMAIN
    return score.scope is STATIC and type(score).normalize_columns is not Score.normalize_columns


def first_rejection(filters: Sequence[Filter], state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
    """The first rejection of a node, or success."""
    for plugin in filters:
        try:
            status = plugin.filter(state, pod, node)
        except Exception as e:
            raise raised(plugin.name, "Filter", e) from e
        if type(status) is not Status:
            expect(status, Status, plugin.name, "Filter")
        if not status.ok:
            return status.by(plugin.name)
    return SUCCESS


def _out_of_range(score: Score, value: int) -> PluginFault:
    return PluginFault(score.name, "NormalizeScore", f"the score {value} is outside of 0 to {MAX_SCORE}")


def _accepted(plugin: Filter, state: CycleState, pod: PodInfo, nodes: AnyColumns) -> Bools:
    with contained(plugin.name, "Filter"):
        found = plugin.filter_columns(pod, nodes)
        if found is None:
            answers = (first_rejection((plugin,), state, pod, node).ok for node in nodes.infos)
            found = np.fromiter(answers, dtype=np.bool_, count=len(nodes))
    return found


def _scored(plugin: Score, state: CycleState, pod: PodInfo, nodes: AnyColumns) -> Ints:
    with contained(plugin.name, "Score"):
        found = plugin.score_columns(pod, nodes)
        if found is None:
            values = (expect(plugin.score(state, pod, node), int, plugin.name, "Score") for node in nodes.infos)
            found = np.fromiter(values, dtype=np.int64, count=len(nodes))
    return found
