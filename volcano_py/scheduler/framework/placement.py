"""Placement: which nodes take a task, and which of them is best. Volcano: PredicateNodes, PrioritizeNodes,
SelectBestNode.

All nodes are considered. Which nodes take a class of equal pods, and their scores, is one set of arrays (`ClassView`),
made by one vector pass and then updated column by column as the session places tasks: a gang of equal pods costs one
pass, and one node's rules per pod.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.framework.broken_rules import RejectAll, broken, isolating
from volcano_py.scheduler.framework.callbacks import Callbacks
from volcano_py.scheduler.framework.class_view import ClassView, foreseeable, look, shares, total
from volcano_py.scheduler.framework.fit_error_counts import count_fit_errors, with_code
from volcano_py.scheduler.framework.fit_errors import ABORTING, Code, FitErrors
from volcano_py.scheduler.framework.node_rules import (
    DOMAIN,
    LOCAL,
    STATIC,
    Bools,
    Codes,
    Filter,
    Floats,
    IdleGate,
    Indices,
    Score,
    WholeFilter,
)
from volcano_py.scheduler.framework.run_places import places_of_run
from volcano_py.scheduler.model.node_table import NodeNumbers, NodeTable, Numbers, SomeNodes
from volcano_py.scheduler.model.resource import EPS
from volcano_py.scheduler.model.spec_class import SpecClass
from volcano_py.scheduler.model.task import Task

_SCALAR_LIMIT = 4
"""Up to this number of changed columns are computed one by one; more in one vector pass."""
_ALL = slice(None)


class Placement:
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
        self.table = table
        self.numbers = numbers
        self.rank = rank
        self.filters = filters
        self.scores = scores
        self.shard = shard
        self.shard_is_hard = shard_is_hard
        self.kube_moves = kube_moves
        """Whether kube-scheduler's view of the nodes follows each placement."""
        self.passes = 0
        """Vector passes over all nodes."""
        self.columns = 0
        """Single columns brought up to date."""
        self.sampler: Callable[[Bools], Bools] | None = None
        """Which of the nodes that accept a task are compared; None: all."""
        self._cache = cache
        self._callbacks = callbacks
        self._views: dict[int, ClassView] = {}
        self._domain_filters: list[WholeFilter] = [f for _, f in filters if f.scope is DOMAIN]
        self._may_fail = any(getattr(s, "may_fail", False) for _, s in scores)
        """Some score may have no answer for a node (NaN): the first of its two sums is 0 then."""

    # ---- asking -----------------------------------------------------------------------------------------

    @isolating
    def accepted(self, task: Task, check_capacity: bool = True) -> Bools:
        """The nodes that take the task: accepted by the filters, and with capacity now or later if `check_capacity`."""
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
        """The same, whatever some DOMAIN filters say."""
        view = self.view(task)
        return bool(view.ok[node]) and all(
            f.filter(task)[node] == 0 for f in view.domain_filters if f.name not in rules
        )

    def owner(self, rule: str) -> str:
        """The plugin that has added a filter, by the filter's name; "" if it is not configured."""
        return next((plugin for plugin, f in self.filters if f.name == rule), "")

    @isolating
    def accepts_by(self, task: Task, node: int, rule: str) -> bool:
        """Whether one filter, by its name, accepts a node; True if it is not configured or does not apply."""
        return all(int(self.codes(f, task)[node]) == 0 for _, f in self.filters if f.name == rule and f.applies(task))

    @isolating
    def resolvable(self, task: Task) -> Bools:
        """The nodes that evictions could make fit: no rule rejects them for another reason.

        Of several plugins the first that rejects a node decides.
        """
        count = len(self.table)
        open_, lost = np.ones(count, dtype=bool), np.zeros(count, dtype=bool)
        if self.shard is not None and self.shard_is_hard:
            lost |= ~self.shard
        rejected = np.zeros(count, dtype=bool)
        previous = None
        for plugin, f in self.filters:
            if plugin != previous:
                open_ &= ~rejected
                rejected[:] = False
                previous = plugin
            if not f.applies(task):
                continue
            codes = self.codes(f, task)
            hit = open_ & (codes != 0)
            rejected |= hit
            lost |= hit & with_code(f, codes, ABORTING)
        return ~lost

    @isolating
    def rejected_by(self, task: Task, node: int, unprepared: Collection[str] = ()) -> bool | None:
        """Whether the filters reject one node for a reason that evictions do not resolve; None: they accept it.

        The first plugin that rejects decides. `unprepared`: plugins that reject the task because their pre_predicate
        has not seen it.
        """
        for plugin, rules in groupby(self.filters, key=itemgetter(0)):
            found = [(f, int(self.codes(f, task)[node])) for _, f in rules if f.applies(task)]
            reasons = [f.reasons[code - 1].code for f, code in found if code]
            if reasons or plugin in unprepared:
                return Code.UNRESOLVABLE in reasons
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
        view = self.view(task)
        everywhere = check_capacity and self.shard is None and without is None and not view.domain_filters
        everywhere = everywhere and self.sampler is None
        if everywhere and self._up_to_date(view, task):
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

        It may stop early: the caller asks `best` for the tasks that are left.
        """
        view = self.view(task)
        if not view.foreseeable or self.shard is not None or self.sampler is not None:
            return []
        if not self._up_to_date(view, task):
            return []
        return places_of_run(view, task, count, self)

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
                return self.choose(candidates, self.scores_of(task, candidates))
        return None

    @isolating
    def scores_of(self, task: Task, candidates: Indices) -> Floats:
        """The complete score of each candidate."""
        view = self.view(task)
        numbers = SomeNodes(self.numbers, candidates)
        self.passes += sum(len(part.domain) for part in view.uneven)
        order, batch = (total(parts, task, numbers, candidates, candidates) for parts in (view.order, view.batch))
        if self._may_fail:
            order = np.nan_to_num(order, nan=0.0)
        scores: Floats = np.zeros(len(candidates)) + (order + batch)
        return scores

    def choose(self, candidates: Indices, scores: Floats) -> int:
        """The candidate with the highest rate; among equals the one of the lowest rank."""
        top = candidates[scores == scores.max()]
        if len(top) == 1:
            return int(top[0])
        return int(top[self.rank[top].argmin()])

    @isolating
    def fit_errors(self, task: Task, check_capacity: bool = True) -> FitErrors:
        """Why no node accepts the task: the reasons of all nodes, counted."""
        view = self.view(task)
        if view.fit_errors is not None and view.fit_errors[0] == self.numbers.log.position:
            return view.fit_errors[1]
        errors = count_fit_errors(self, task, check_capacity)
        if not view.domain_filters:
            view.fit_errors = (self.numbers.log.position, errors)
        return errors

    @isolating
    def fit_errors_within(self, task: Task, hyper_node: str, nodes: Indices) -> FitErrors:
        """Why none of a HyperNode's nodes accepts the task."""
        errors = count_fit_errors(self, task, True, nodes)
        errors.hyper_node = hyper_node
        return errors

    # ---- rules that raise -------------------------------------------------------------------------------

    def replace_broken_rules(self, task: Task) -> bool:
        """Report the plugins whose rules raise for a task, and replace these rules; whether there were any."""
        filters = {id(f): (plugin, f, e) for plugin, f, e in broken(self.filters, task, self.numbers)}
        scores = {id(s): (plugin, s, e) for plugin, s, e in broken(self.scores, task, self.numbers)}
        for point, found in (("predicate", filters), ("node_order", scores)):
            for plugin, _, error in found.values():
                self._callbacks.fault(plugin, point, error, task.key)
        count = len(self.table)
        self.filters = [(p, RejectAll(f.name, p, count) if id(f) in filters else f) for p, f in self.filters]
        self.scores = [(p, s) for p, s in self.scores if id(s) not in scores]
        self._domain_filters = [f for _, f in self.filters if f.scope is DOMAIN]
        self._views.clear()
        for key in [key for key in self._cache if key[0] in {f.name for _, f, _ in filters.values()}]:
            del self._cache[key]
        return bool(filters or scores)

    # ---- views ------------------------------------------------------------------------------------------

    def view(self, task: Task) -> ClassView:
        """The class's arrays, brought up to date."""
        view = self._views.get(task.spec_class.id)
        if view is None:
            view = self._views[task.spec_class.id] = self._make(task)
        elif view.position != self.numbers.log.position:
            self._refresh(view, task)
        return view

    def _make(self, task: Task) -> ClassView:
        v = ClassView()
        cls = task.spec_class
        v.vector = cls.vector(self.table)
        v.rows = cls.checked_rows(self.table)
        v.need = v.vector[v.rows, None]
        v.all_rows = len(v.rows) == len(self.table.rows)
        v.domain_filters = [f for f in self._domain_filters if f.applies(task)]
        v.fit_errors = None
        v.filters = [f for _, f in self.filters if f.scope is LOCAL and f.applies(task)]
        count = len(self.table)
        v.static = self._static_ok(task)
        static = lambda s: self._cached(s.name, cls, lambda: s.score(task))  # noqa: E731
        v.order, v.batch = shares(task, self.scores, False, static), shares(task, self.scores, True, static)
        v.uneven = [part for part in (*v.order, *v.batch) if part.domain]
        v.position = self.numbers.log.position
        v.gates = [f for f in v.filters if isinstance(f, IdleGate)]
        v.future_differs = self.numbers.future_differs or bool(v.gates)
        v.stale = False
        v.ok, v.idle = np.empty(count, dtype=bool), np.empty(count, dtype=bool)
        v.future = np.empty(count, dtype=bool) if v.future_differs else v.idle
        v.masked = np.empty(count)
        self._even(v, task)
        self._pass(v, task, _ALL)
        self.passes += 1
        v.foreseeable = not (v.domain_filters or self._may_fail) and foreseeable(v, task)
        return v

    def _static_ok(self, task: Task) -> Bools | None:
        ok: Bools | None = None
        for _, f in self.filters:
            if f.scope is STATIC and f.applies(task):
                codes = self.codes(f, task)
                ok = codes == 0 if ok is None else ok & (codes == 0)
        return ok

    def codes(self, f: Filter, task: Task) -> Codes:
        """What one filter says of every node: 0, or which of its reasons."""
        if f.scope is LOCAL:
            return f.filter(task, self.numbers)
        if f.scope is STATIC:
            codes: Codes = self._cached(f.name, task.spec_class, lambda: f.filter(task))
            return codes
        return f.filter(task)

    def _cached(self, rule: str, cls: SpecClass, make: Any) -> Any:
        key = (rule, cls.id)
        if key not in self._cache:
            self._cache[key] = make()
        return self._cache[key]

    def _pass(self, v: ClassView, task: Task, nodes: Any) -> None:
        """One vector pass over some nodes, or over all (`_ALL`)."""
        numbers: Numbers = self.numbers if nodes is _ALL else SomeNodes(self.numbers, nodes)
        v.ok[nodes], v.idle[nodes], future, v.masked[nodes] = look(v, task, numbers, nodes)
        if v.future_differs:
            v.future[nodes] = future
        v.stale = v.stale and nodes is not _ALL

    def _refresh(self, v: ClassView, task: Task) -> None:
        log = self.numbers.log
        if self.numbers.future_differs and not v.future_differs:
            v.future_differs = True
            v.future = np.empty(len(v.idle), dtype=bool)
            v.position = log.position
            self._pass(v, task, _ALL)
            return
        changed = log.since(v.position)
        v.position = log.position
        self.columns += len(changed)
        if len(changed) > _SCALAR_LIMIT:
            some = len(changed) * 4 < len(self.table)
            self._pass(v, task, np.asarray(changed, dtype=np.intp) if some else _ALL)
            return
        for node in changed:
            self._one(v, task, int(node))

    def _one(self, v: ClassView, task: Task, node: int) -> None:
        """The same for one column, without arrays."""
        n = self.numbers
        idle = future = True
        for row in v.rows:
            need = v.vector.item(row)
            free = n.idle.item(row, node)
            if need - free >= EPS:
                idle = False
            if v.future_differs and need - (free + n.releasing.item(row, node) - n.pipelined.item(row, node)) >= EPS:
                future = False
        idle = idle and all(gate.idle_node(task, node) for gate in v.gates)
        v.idle[node] = idle
        if v.future_differs:
            v.future[node] = future
        ok = v.static is None or bool(v.static[node])
        for f in v.filters:
            ok = ok and f.filter_node(task, node) == 0
        v.ok[node] = ok
        if not (ok and idle and future):
            v.masked[node] = -np.inf
            return
        order = batch = 0.0
        for part in v.order:
            order += part.one(task, node)
        for part in v.batch:
            batch += part.one(task, node)
        v.masked[node] = order + batch

    # ---- choosing ---------------------------------------------------------------------------------------

    def _even(self, v: ClassView, task: Task) -> bool:
        """Whether the DOMAIN scores rate all nodes the same; what each plugin then adds is noted."""
        for part in v.uneven:
            constant = 0.0
            for d in part.domain:
                rate = d.constant(task)
                if rate is None:
                    return False
                constant += rate
            if constant != part.constant:
                part.constant = constant
                v.stale = True
        return True

    def _up_to_date(self, v: ClassView, task: Task) -> bool:
        """Whether `masked` holds the complete scores."""
        if not self._even(v, task):
            return False
        if v.stale:
            self._pass(v, task, _ALL)
        return True

    def _first_of_best(self, masked: Floats) -> int | None:
        if not len(masked):
            return None
        first = int(masked.argmax())
        top = masked.item(first)
        if top == -np.inf:
            return None
        ties = np.flatnonzero(masked == top)
        if len(ties) > 1:
            return int(ties[self.rank[ties].argmin()])
        return first
