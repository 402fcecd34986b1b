"""Placement: which nodes take a task, and which of them is best. Volcano: PredicateNodes, PrioritizeNodes,
SelectBestNode.

All nodes are looked at. What a class of equal pods thinks of every node is one set of arrays (`ClassView`),
made by one vector pass and then kept up column by column as the session places tasks: a gang of equal pods
costs one pass, and one node's rules per pod.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.framework.class_view import Bools, ClassView, Floats
from volcano_py.scheduler.framework.fit_errors import ABORTING, Code, FitErrors
from volcano_py.scheduler.framework.node_rules import (
    DOMAIN,
    LOCAL,
    STATIC,
    DomainScore,
    Filter,
    Score,
    WholeFilter,
)
from volcano_py.scheduler.framework.refusals import count_refusals
from volcano_py.scheduler.model.node_table import NodeNumbers, NodeTable, Numbers, SomeNodes
from volcano_py.scheduler.model.resource import EPS
from volcano_py.scheduler.model.spec_class import SpecClass
from volcano_py.scheduler.model.task import Task

Indices = NDArray[np.intp]

_SCALAR_LIMIT = 4
"""Up to so many changed columns are recomputed one by one; more in one vector pass over them."""
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
    ) -> None:
        self.table = table
        self.numbers = numbers
        self.rank = rank
        self.filters = filters
        self.scores = scores
        self.shard = shard
        self.shard_is_hard = shard_is_hard
        self.passes = 0
        """Vector passes over all nodes."""
        self.columns = 0
        """Single columns brought up to date."""
        self._cache = cache
        self._views: dict[int, ClassView] = {}
        self._domain_filters: list[WholeFilter] = [f for _, f in filters if f.scope is DOMAIN]
        self._domain_scores: list[DomainScore] = [s for _, s in scores if s.scope is DOMAIN]

    # ---- asking -----------------------------------------------------------------------------------------

    def accepted(self, task: Task, room: bool = True) -> Bools:
        """The nodes on which the task may be put: by the filters and, if `room`, with room now or soon."""
        view = self.view(task)
        ok = view.ok & view.future if room else view.ok
        for f in view.domain_filters:
            self.passes += 1
            ok = ok & (f.codes(task) == 0)
        if self.shard is not None and self.shard_is_hard:
            ok = ok & self.shard
        return ok

    def accepts(self, task: Task, node: int) -> bool:
        """Whether the filters accept one node; room is not looked at."""
        return self.accepts_but(task, node, ())

    def accepts_but(self, task: Task, node: int, rules: Sequence[str]) -> bool:
        """The same, whatever some DOMAIN filters say."""
        view = self.view(task)
        return bool(view.ok[node]) and all(f.codes(task)[node] == 0 for f in view.domain_filters if f.name not in rules)

    def accepts_by(self, task: Task, node: int, rule: str) -> bool:
        """Whether one filter, by its name, accepts a node; True if it is not configured or does not apply."""
        return all(int(self.codes(f, task)[node]) == 0 for _, f in self.filters if f.name == rule and f.applies(task))

    def resolvable(self, task: Task) -> Bools:
        """The nodes that evicting pods could make fit: no rule refuses them for another reason.

        Of several plugins the first that refuses a node is the one that is heard.
        """
        count = len(self.table)
        open_, lost = np.ones(count, dtype=bool), np.zeros(count, dtype=bool)
        if self.shard is not None and self.shard_is_hard:
            lost |= ~self.shard
        refused = np.zeros(count, dtype=bool)
        previous = None
        for plugin, f in self.filters:
            if plugin != previous:
                open_ &= ~refused
                refused[:] = False
                previous = plugin
            if not f.applies(task):
                continue
            codes = self.codes(f, task)
            for i, reason in enumerate(f.reasons):
                hit = open_ & (codes == i + 1)
                refused |= hit
                if reason.code in ABORTING:
                    lost |= hit
        return ~lost

    def refused_by(self, task: Task, node: int) -> bool | None:
        """Whether the filters refuse one node for a reason that evicting cannot help; None: they accept it."""
        if self.accepts(task, node):
            return None
        for _, f in self.filters:
            if f.applies(task):
                code = int(self.codes(f, task)[node])
                if code and f.reasons[code - 1].code is Code.UNRESOLVABLE:
                    return True
        return False

    def fits_now(self, task: Task, node: int) -> bool:
        return bool(self.view(task).idle[node])

    def fits_soon(self, task: Task, node: int) -> bool:
        return bool(self.view(task).future[node])

    def best(self, task: Task, room: bool = True, without: Bools | None = None) -> int | None:
        """The best node of the first non-empty group: room now, then room soon; own shard before others.

        `without`: nodes that are not to be looked at. None: no node accepts the task; `refusal` says why.
        """
        view = self.view(task)
        if room and self.shard is None and without is None and not view.domain_filters:
            constant = self._constant(view, task)
            if constant is not None:
                if constant != view.constant:
                    self._set_constant(view, task, constant)
                first = self._first_of_best(view.masked)
                if first is not None or not view.future.any():
                    return first
        ok = self.accepted(task, room)
        if without is not None:
            ok = ok & ~without
        return self._best_of(view, task, ok, room)

    def best_among(self, task: Task, nodes: Bools) -> int | None:
        """The best of some nodes that have room now or soon, whatever the filters say of them."""
        view = self.view(task)
        return self._best_of(view, task, nodes & view.future, room=True)

    def _best_of(self, view: ClassView, task: Task, ok: Bools, room: bool) -> int | None:
        groups = [ok & view.idle, ok & view.future & ~view.idle] if room else [ok]
        if self.shard is not None:
            groups = [part for g in groups for part in (g & self.shard, g & ~self.shard)]
        for group in groups:
            candidates = np.flatnonzero(group)
            if len(candidates) == 1:
                return int(candidates[0])
            if len(candidates):
                return self.choose(candidates, self.rates(task, candidates))
        return None

    def rates(self, task: Task, candidates: Indices) -> Floats:
        """The complete score of each candidate."""
        view = self.view(task)
        order, batch = self._sums(view, task, SomeNodes(self.numbers, candidates), candidates)
        for s in view.domain_scores:
            self.passes += 1
            if s.batch:
                batch = batch + s.over(task, candidates)
            else:
                order = order + s.over(task, candidates)
        return np.zeros(len(candidates)) + (order + batch)

    def order_rate(self, task: Task, node: int) -> float:
        """The first of the two sums alone, for one node (NodeOrderFn)."""
        v = self.view(task)
        rate = v.static_order.item(node) + sum(s.rate_one(task, node) for s in v.scores if not s.batch)
        for s in v.domain_scores:
            if not s.batch:
                rate += s.over(task, np.array([node])).item(0)
        return rate

    def batch_rates(self, task: Task, candidates: Indices) -> Floats:
        """The second of the two sums alone (BatchNodeOrderFn)."""
        view = self.view(task)
        _, batch = self._sums(view, task, SomeNodes(self.numbers, candidates), candidates)
        for s in view.domain_scores:
            if s.batch:
                batch = batch + s.over(task, candidates)
        return np.zeros(len(candidates)) + batch

    def choose(self, candidates: Indices, rates: Floats) -> int:
        """The candidate with the highest rate; among equals the one of the lowest rank."""
        top = candidates[rates == rates.max()]
        if len(top) == 1:
            return int(top[0])
        return int(top[self.rank[top].argmin()])

    def refusal(self, task: Task, room: bool = True) -> FitErrors:
        """Why no node accepts the task: every node's reasons, counted."""
        view = self.view(task)
        if view.refusal is not None and view.refusal[0] == len(self.numbers.log):
            return view.refusal[1]
        errors = count_refusals(self, task, room)
        if not view.domain_filters:
            view.refusal = (len(self.numbers.log), errors)
        return errors

    def refusal_within(self, task: Task, hyper_node: str, nodes: Indices) -> FitErrors:
        """Why none of a HyperNode's nodes accepts the task."""
        errors = count_refusals(self, task, True, nodes)
        errors.hyper_node = hyper_node
        return errors

    # ---- views ------------------------------------------------------------------------------------------

    def view(self, task: Task) -> ClassView:
        """The class's arrays, brought up to date."""
        view = self._views.get(task.spec_class.id)
        if view is None:
            view = self._views[task.spec_class.id] = self._make(task)
        elif view.position != len(self.numbers.log):
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
        v.domain_scores = [s for s in self._domain_scores if s.applies(task)]
        v.constant = self._constant(v, task) or 0.0
        v.refusal = None
        v.filters = [f for _, f in self.filters if f.scope is LOCAL and f.applies(task)]
        v.scores = [s for _, s in self.scores if s.scope is LOCAL and s.applies(task)]
        count = len(self.table)
        v.static = self._static_ok(task)
        v.static_order, v.static_batch = np.zeros(count), np.zeros(count)
        v.has_static = False
        for _, s in self.scores:
            if s.scope is STATIC and s.applies(task):
                rates = self._cached(s.name, cls, lambda s=s: s.rate(task))
                v.has_static = True
                if s.batch:
                    v.static_batch += rates
                else:
                    v.static_order += rates
        v.position = len(self.numbers.log)
        v.promised = self.numbers.promised
        v.ok, v.idle = np.empty(count, dtype=bool), np.empty(count, dtype=bool)
        v.future = np.empty(count, dtype=bool) if v.promised else v.idle
        v.masked = np.empty(count)
        self._pass(v, task, _ALL)
        self.passes += 1
        return v

    def _static_ok(self, task: Task) -> Bools | None:
        ok: Bools | None = None
        for _, f in self.filters:
            if f.scope is STATIC and f.applies(task):
                codes = self.codes(f, task)
                ok = codes == 0 if ok is None else ok & (codes == 0)
        return ok

    def codes(self, f: Filter, task: Task) -> NDArray[np.int8]:
        """What one filter says of every node: 0, or which of its reasons."""
        if f.scope is LOCAL:
            return f.codes(task, self.numbers)
        if f.scope is STATIC:
            codes: NDArray[np.int8] = self._cached(f.name, task.spec_class, lambda: f.codes(task))
            return codes
        return f.codes(task)

    def _cached(self, rule: str, cls: SpecClass, make: Any) -> Any:
        key = (rule, cls.id)
        if key not in self._cache:
            self._cache[key] = make()
        return self._cache[key]

    def _pass(self, v: ClassView, task: Task, nodes: Any) -> None:
        """One vector pass over some nodes, or over all (`_ALL`)."""
        numbers: Numbers = self.numbers if nodes is _ALL else SomeNodes(self.numbers, nodes)
        free = numbers.idle if v.all_rows else numbers.idle[v.rows]
        idle = np.logical_and.reduce(v.need - free < EPS)
        v.idle[nodes] = idle
        if v.promised:
            soon = free + numbers.releasing[v.rows] - numbers.pipelined[v.rows]
            v.future[nodes] = np.logical_and.reduce(v.need - soon < EPS)
        ok: Any = None if v.static is None else v.static[nodes]
        for f in v.filters:
            accepts = f.codes(task, numbers) == 0
            ok = accepts if ok is None else ok & accepts
        v.ok[nodes] = ok = np.ones(len(idle), dtype=bool) if ok is None else ok
        order, batch = self._sums(v, task, numbers, nodes)
        v.masked[nodes] = np.where(ok & idle, order + (batch + v.constant), -np.inf)

    def _sums(self, v: ClassView, task: Task, numbers: Numbers, nodes: Any) -> tuple[Floats, Floats]:
        """The two sums of STATIC and LOCAL scores."""
        order: Any = v.static_order[nodes] if v.has_static else 0.0
        batch: Any = v.static_batch[nodes] if v.has_static else 0.0
        for s in v.scores:
            if s.batch:
                batch = batch + s.rate(task, numbers)
            else:
                order = order + s.rate(task, numbers)
        return order, batch

    def _refresh(self, v: ClassView, task: Task) -> None:
        log = self.numbers.log
        if v.promised != self.numbers.promised:
            v.promised = True
            v.future = np.empty(len(v.idle), dtype=bool)
            v.position = len(log)
            self._pass(v, task, _ALL)
            return
        changed = log[v.position :]
        v.position = len(log)
        if len(changed) > 1:
            changed = list(set(changed))
        self.columns += len(changed)
        if len(changed) > _SCALAR_LIMIT:
            some = len(changed) * 4 < len(self.table)
            self._pass(v, task, np.array(changed, dtype=np.intp) if some else _ALL)
            return
        for node in changed:
            self._one(v, task, node)

    def _one(self, v: ClassView, task: Task, node: int) -> None:
        """The same for one column, without arrays."""
        n = self.numbers
        idle = future = True
        for row in v.rows:
            need = v.vector.item(row)
            free = n.idle.item(row, node)
            if need - free >= EPS:
                idle = False
            if v.promised and need - (free + n.releasing.item(row, node) - n.pipelined.item(row, node)) >= EPS:
                future = False
        v.idle[node] = idle
        if v.promised:
            v.future[node] = future
        ok = v.static is None or bool(v.static[node])
        for f in v.filters:
            ok = ok and f.code(task, node) == 0
        v.ok[node] = ok
        order, batch = v.static_order.item(node), v.static_batch.item(node)
        for s in v.scores:
            if s.batch:
                batch += s.rate_one(task, node)
            else:
                order += s.rate_one(task, node)
        v.masked[node] = order + (batch + v.constant) if ok and idle else -np.inf

    # ---- choosing ---------------------------------------------------------------------------------------

    def _constant(self, v: ClassView, task: Task) -> float | None:
        """What the DOMAIN scores add if they rate all nodes the same; None if they do not."""
        sum_ = 0.0
        for s in v.domain_scores:
            c = s.constant(task)
            if c is None:
                return None
            sum_ += c
        return sum_

    def _set_constant(self, v: ClassView, task: Task, constant: float) -> None:
        v.constant = constant
        self._pass(v, task, _ALL)

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
