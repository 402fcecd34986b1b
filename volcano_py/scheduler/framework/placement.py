"""Placement: which nodes accept a task, and which of them is best. Volcano: PredicateNodes, PrioritizeNodes,
SelectBestNode.

All nodes are considered. Which nodes accept a class of equal pods, and their scores, are one set of arrays
(`ClassViews`): a gang of equal pods costs one vector pass, and the evaluation of one node per pod.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.framework.callbacks import Callbacks
from volcano_py.scheduler.framework.kernels.applied_rules import total
from volcano_py.scheduler.framework.search.broken_rules import isolating
from volcano_py.scheduler.framework.search.class_view import ClassView
from volcano_py.scheduler.framework.search.class_views import ClassViews
from volcano_py.scheduler.framework.search.fit_error_counts import count_fit_errors
from volcano_py.scheduler.framework.search.fit_errors import FitCode, FitErrors
from volcano_py.scheduler.framework.search.node_rules import Bools, Filter, Floats, Indices, Score
from volcano_py.scheduler.framework.search.resolvable_nodes import ResolvableNodes
from volcano_py.scheduler.framework.search.shortages import SessionShortages
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.nodes.node_table import NodeNumbers, NodeTable
from volcano_py.scheduler.model.nodes.some_nodes import SomeNodes


class Placement(ClassViews):
    """The search for nodes in one session."""

    def __init__(
        self,
        table: NodeTable,
        numbers: NodeNumbers,
        rank: NDArray[np.int64],
        filters: list[tuple[str, Filter]],
        scores: list[tuple[str, Score]],
        shard: Bools | None,
        shard_is_hard: bool,
        cache: dict[tuple[str, int], Any],
        callbacks: Callbacks,
        kube_moves: bool,
    ) -> None:
        super().__init__(table, numbers, filters, scores, cache, callbacks)
        self.rank = rank
        self.shard = shard
        self.shard_is_hard = shard_is_hard
        self.kube_moves = kube_moves
        """Whether kube-scheduler's view of the nodes is updated with each placement."""
        self.sampler: Callable[[Bools], Bools] | None = None
        """Which of the nodes that accept a task are compared; None: all."""
        self.shortages: SessionShortages | None = None
        """The classes for which every node lacks capacity; None: they are not kept."""
        self._resolvable = ResolvableNodes()

    # ---- filtering --------------------------------------------------------------------------------------

    @isolating
    def accepted(self, task: Task, check_capacity: bool = True) -> Bools:
        """The nodes that accept the task: by the filters, and with capacity now or later if `check_capacity`."""
        view = self.view(task)
        ok = view.ok & view.future if check_capacity else view.ok
        for f in view.domain_filters:
            self.passes += 1
            ok = ok & (f.filter(task) == 0)
        if self.shard is not None and self.shard_is_hard:
            ok = ok & self.shard
        return ok

    @isolating
    def accepts(self, task: Task, node: int) -> bool:
        """Whether the filters accept one node; its capacity is not checked."""
        return self.accepts_but(task, node, ())

    @isolating
    def accepts_but(self, task: Task, node: int, rules: Sequence[str]) -> bool:
        """Whether the filters accept one node, without some DOMAIN filters."""
        view = self.view(task)
        return bool(view.ok[node]) and all(
            f.filter(task)[node] == 0 for f in view.domain_filters if f.name not in rules
        )

    def owner(self, rule: str) -> str:
        """The plugin that has added a filter, by the filter's name; "" if no enabled plugin has."""
        return next((plugin for plugin, f in self.filters if f.name == rule), "")

    @isolating
    def accepts_by(self, task: Task, node: int, rule: str) -> bool:
        """Whether one filter, by its name, accepts a node; True if it is not enabled or does not apply."""
        return all(int(self.codes(f, task)[node]) == 0 for _, f in self.filters if f.name == rule and f.applies(task))

    @isolating
    def resolvable(self, task: Task) -> Bools:
        """The nodes that would accept the task after evictions: no rule rejects them for another reason."""
        return self._resolvable.of(self, task)

    @isolating
    def rejected_by(self, task: Task, node: int, unprepared: Collection[str] = ()) -> bool | None:
        """Whether the filters reject one node for a reason that evictions do not resolve; None: they accept it.

        The first plugin that rejects decides. `unprepared`: plugins that reject the task because their pre_predicate
        was not called for it.
        """
        for plugin, rules in groupby(self.filters, key=itemgetter(0)):
            found = [(f, int(self.codes(f, task)[node])) for _, f in rules if f.applies(task)]
            reasons = [f.reasons[code - 1].code for f, code in found if code]
            if reasons or plugin in unprepared:
                return FitCode.UNRESOLVABLE in reasons
        return None

    @isolating
    def has_idle(self, task: Task) -> Bools:
        """The nodes with idle capacity for the task, whether or not the filters accept them."""
        return self.view(task).idle

    @isolating
    def fits_now(self, task: Task, node: int) -> bool:
        return bool(self.view(task).idle[node])

    @isolating
    def fits_soon(self, task: Task, node: int) -> bool:
        return bool(self.view(task).future[node])

    @isolating
    def best(self, task: Task, check_capacity: bool = True, without: Bools | None = None) -> int | None:
        """The best node of the first non-empty group: idle capacity, then future capacity; own shard before others.

        `without`: nodes that are left out. None: no node accepts the task; `fit_errors` gives the reasons.
        """
        if check_capacity and self.shortages is not None and self.shortages.of(task.spec_class) is not None:
            return None
        view = self.view(task)
        everywhere = check_capacity and self.shard is None and without is None and not view.domain_filters
        everywhere = everywhere and self.sampler is None
        if everywhere and self.up_to_date(view, task):
            first = self._first_of_best(view.masked)
            if first is not None or not view.future.any():
                return first
        ok = self.accepted(task, check_capacity)
        if without is not None:
            ok = ok & ~without
        if self.sampler is not None:
            ok = self.sampler(ok)
        return self._best_of(view, task, ok, check_capacity)

    @isolating
    def best_for_run(self, task: Task, count: int) -> list[int]:
        """The nodes that `best` would return for tasks equal to this one, one after the other, as long as they fit now.

        The list may be shorter than `count`: the caller calls `best` for the remaining tasks.
        """
        view = self.view(task)
        if not view.foreseeable or self.shard is not None or self.sampler is not None:
            return []
        if not self.up_to_date(view, task):
            return []
        return self.kernels.places_of_run(view, task, count, self)

    @isolating
    def best_among(self, task: Task, nodes: Bools) -> int | None:
        """The best of some nodes with idle or future capacity, whether or not the filters accept them."""
        view = self.view(task)
        return self._best_of(view, task, nodes & view.future, check_capacity=True)

    def _best_of(self, view: ClassView, task: Task, ok: Bools, check_capacity: bool) -> int | None:
        groups = [ok & view.idle, ok & view.future & ~view.idle] if check_capacity else [ok]
        if self.shard is not None:
            groups = [part for g in groups for part in (g & self.shard, g & ~self.shard)]
        for group in groups:
            candidates = np.flatnonzero(group)
            if len(candidates) == 1:
                return int(candidates[0])
            if len(candidates):
                return self.choose(candidates, self._known_scores(view, task, candidates))
        return None

    def _known_scores(self, view: ClassView, task: Task, candidates: Indices) -> Floats:
        """The complete score of each candidate, without a pass if all of them have idle capacity for the task."""
        if not self.may_fail and self.up_to_date(view, task):
            scores: Floats = view.masked[candidates]
            if scores.min() > -np.inf:
                return scores
        return self.scores_of(task, candidates)

    @isolating
    def scores_of(self, task: Task, candidates: Indices) -> Floats:
        """The complete score of each candidate."""
        view = self.view(task)
        numbers = SomeNodes(self.numbers, candidates)
        self.passes += sum(len(part.domain) for part in view.uneven)
        order, batch = (total(parts, task, numbers, candidates, candidates) for parts in (view.order, view.batch))
        if self.may_fail:
            order = np.nan_to_num(order, nan=0.0)
        scores: Floats = np.zeros(len(candidates)) + (order + batch)
        return scores

    def choose(self, candidates: Indices, scores: Floats) -> int:
        """The candidate with the highest score; among equals the one of the lowest rank."""
        top = candidates[scores == scores.max()]
        if len(top) == 1:
            return int(top[0])
        return int(top[self.rank[top].argmin()])

    @isolating
    def fit_errors(self, task: Task, check_capacity: bool = True) -> FitErrors:
        """Why no node accepts the task: the reasons of all nodes, counted."""
        known = self.shortages.of(task.spec_class) if check_capacity and self.shortages is not None else None
        if known is not None:
            return known
        view = self.view(task)
        if view.fit_errors is not None and view.fit_errors[0] == self.numbers.log.position:
            return view.fit_errors[1]
        errors = count_fit_errors(self, task, check_capacity)
        if check_capacity and self.shortages is not None and not view.future.any():
            self.shortages.add(task.spec_class)
        if not view.domain_filters:
            view.fit_errors = (self.numbers.log.position, errors)
        return errors

    @isolating
    def fit_errors_within(self, task: Task, hyper_node: str, nodes: Indices) -> FitErrors:
        """Why none of a HyperNode's nodes accepts the task."""
        errors = count_fit_errors(self, task, True, nodes)
        errors.hyper_node = hyper_node
        return errors

    # ---- choosing ---------------------------------------------------------------------------------------

    def _first_of_best(self, masked: Floats) -> int | None:
        best = self.kernels.best_column(masked, self.rank)
        return None if best < 0 else best
