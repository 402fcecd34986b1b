"""ClassViews: the arrays of all classes of pods in one session, built by a vector pass, then updated column by column.
Volcano: PredicateNodes and PrioritizeNodes, which evaluate every node for every task.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from volcano_py.scheduler.framework.callbacks import Callbacks
from volcano_py.scheduler.framework.kernels.applied_rules import shares
from volcano_py.scheduler.framework.kernels.choice import chosen
from volcano_py.scheduler.framework.search.broken_rules import RejectAll, broken
from volcano_py.scheduler.framework.search.class_view import ClassView, foreseeable
from volcano_py.scheduler.framework.search.node_rules import (
    DOMAIN,
    LOCAL,
    STATIC,
    Bools,
    Codes,
    Filter,
    Score,
    WholeFilter,
    is_idle_gate,
)
from volcano_py.scheduler.model.jobs.spec_class import SpecClass
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.nodes.node_table import (
    NodeNumbers,
    NodeTable,
    arrays_kept,
    drop_oldest,
)


class ClassViews:
    """The rules of one session, and their results for each class and node."""

    def __init__(
        self,
        table: NodeTable,
        numbers: NodeNumbers,
        filters: list[tuple[str, Filter]],
        scores: list[tuple[str, Score]],
        cache: dict[tuple[str, int], Any],
        callbacks: Callbacks,
    ) -> None:
        self.table = table
        self.numbers = numbers
        self.filters = filters
        self.scores = scores
        self.passes = 0
        """Vector passes over all nodes."""
        self.columns = 0
        """Number of single columns that were updated."""
        self.may_fail = any(getattr(s, "may_fail", False) for _, s in scores)
        """Whether a score can be NaN for a node; the first of the node's two sums is then 0."""
        self.kernels = chosen()
        self._cache = cache
        self._callbacks = callbacks
        self._views: dict[int, ClassView] = {}
        self._kept = arrays_kept(len(table))
        self._domain_filters: list[WholeFilter] = [f for _, f in filters if f.scope is DOMAIN]

    def view(self, task: Task) -> ClassView:
        """The class's arrays, updated."""
        view = self._views.get(task.spec_class.id)
        if view is None:
            view = self._make(task)
            drop_oldest(self._views, self._kept // 2)
            self._views[task.spec_class.id] = view
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
        v.gates = [f for f in v.filters if is_idle_gate(f)]
        v.future_differs = self.numbers.future_differs or bool(v.gates)
        v.stale = False
        v.program = v.few = None
        v.few_known = False
        v.ok, v.idle = np.empty(count, dtype=bool), np.empty(count, dtype=bool)
        v.future = np.empty(count, dtype=bool) if v.future_differs else v.idle
        v.masked = np.empty(count)
        self.even(v, task)
        self.kernels.prepare(v, task, self.numbers)
        self._all_columns(v, task)
        self.passes += 1
        v.foreseeable = not (v.domain_filters or self.may_fail) and foreseeable(v, task)
        return v

    def _static_ok(self, task: Task) -> Bools | None:
        ok: Bools | None = None
        for _, f in self.filters:
            if f.scope is STATIC and f.applies(task):
                codes = self.codes(f, task)
                ok = codes == 0 if ok is None else ok & (codes == 0)
        return ok

    def codes(self, f: Filter, task: Task) -> Codes:
        """The result of one filter for every node: 0, or the number of its reason."""
        if f.scope is LOCAL:
            return f.filter(task, self.numbers)
        if f.scope is STATIC:
            codes: Codes = self._cached(f.name, task.spec_class, lambda: f.filter(task))
            return codes
        return f.filter(task)

    def _cached(self, rule: str, cls: SpecClass, make: Any) -> Any:
        key = (rule, cls.id)
        if key not in self._cache:
            made = make()
            drop_oldest(self._cache, self._kept)
            self._cache[key] = made
        return self._cache[key]

    def _all_columns(self, v: ClassView, task: Task) -> None:
        self.kernels.all_columns(v, task, self.numbers)
        v.stale = False

    def _refresh(self, v: ClassView, task: Task) -> None:
        log = self.numbers.log
        if self.numbers.future_differs and not v.future_differs:
            v.future_differs = True
            v.future = np.empty(len(v.idle), dtype=bool)
            v.position = log.position
            self._all_columns(v, task)
            return
        changed = log.since(v.position)
        v.position = log.position
        self.columns += len(changed)
        self.kernels.some_columns(v, task, self.numbers, changed)

    def even(self, v: ClassView, task: Task) -> bool:
        """Whether the DOMAIN scores are the same for all nodes; what each plugin then adds is stored in its `Share`."""
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
        if v.stale and (v.program is not None or v.few_known):
            self.kernels.prepare(v, task, self.numbers)
        return True

    def up_to_date(self, v: ClassView, task: Task) -> bool:
        """Whether `masked` holds the complete scores."""
        if not self.even(v, task):
            return False
        if v.stale:
            self._all_columns(v, task)
        return True

    def replace_broken_rules(self, task: Task) -> bool:
        """Report the plugins whose rules raise for a task, and replace these rules; returns whether there were any."""
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
