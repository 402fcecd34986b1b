"""A filter of a profile in a session. Kubernetes: RunFilterPlugins.

For the session its scope is DOMAIN, because a result may depend on the pod's labels and on calls at PreFilter. The
scope that the plugin declares decides how much is kept between two calls: STATIC results for the pod's class until Node
objects change, LOCAL ones until a node changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.framework.search.fit_errors import FitCode, Reason
from volcano_py.scheduler.framework.search.node_rules import DOMAIN, STATIC, Codes, Scope
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.profiles.columns import Columns
from volcano_py.scheduler.profiles.faults import expect
from volcano_py.scheduler.profiles.plugin_api.extension_points import Filter, ProfilePlugin
from volcano_py.scheduler.profiles.plugin_api.status import Status
from volcano_py.scheduler.profiles.sessions.session_attempt import Attempts, SessionAttempt, reason_of
from volcano_py.scheduler.rules.arrays import Bools

_Numbers = NDArray[np.int32]


class _Kept(NamedTuple):
    """The results for one class, by column."""

    columns: Columns
    generation: int
    codes: _Numbers
    seen: int
    """The position in the columns' log up to which changes are included."""


class ProfileFilter:
    """PreEnqueue, PreFilter and Filter of one plugin."""

    scope: Literal[Scope.DOMAIN] = DOMAIN
    follows_dry_runs = True
    limits_pods = True

    def __init__(self, plugin: ProfilePlugin, attempts: Attempts, *, closed: bool = False) -> None:
        """`closed`: the plugin is not called, and all nodes are rejected."""
        self.name = f"{attempts.profile}/{plugin.name}"
        self.reasons: list[Reason] = []
        self._plugin = plugin
        self._filter = plugin if isinstance(plugin, Filter) and plugin in attempts.selection.filter else None
        self._attempts = attempts
        self._closed = Reason(f"plugin {plugin.name} did not return", FitCode.ERROR) if closed else None
        self._numbers: dict[Reason, int] = {}
        self._kept: dict[int, _Kept] = {}
        self._last: tuple[Any, Codes] | None = None

    def applies(self, task: Task) -> bool:
        return self._attempts.concerns(task)

    def filter(self, task: Task) -> Codes:
        attempt = self._attempts.of(task)
        if self._last is not None and self._last[0] == attempt.version:
            return self._last[1]
        try:
            codes = self._codes(task, attempt)
        except Exception as e:
            failed = self._number(self._attempts.fault(self._plugin, "Filter", e, attempt.pod))
            codes = np.full(len(attempt.columns), failed, dtype=np.int32)
        found: Codes = attempt.columns.to_model(codes)
        self._last = attempt.version, found
        return found

    def _codes(self, task: Task, attempt: SessionAttempt) -> _Numbers:
        """By column of the profile's nodes."""
        count = len(attempt.columns)
        rejected = self._closed or attempt.rejected.get(self._plugin.name)
        if rejected is not None:
            return np.full(count, self._number(rejected), dtype=np.int32)
        if self._filter is None or self._plugin.name in attempt.state.skip_filter:
            codes: _Numbers = np.zeros(count, dtype=np.int32)
        elif self._filter.scope is DOMAIN:
            codes = self._domain(self._filter, attempt)
        else:
            codes = self._of_class(self._filter, task, attempt)
        only = attempt.only.get(self._plugin.name)
        if only is not None:
            elsewhere = self._number(
                Reason(f"node(s) didn't satisfy plugin(s) [{self._plugin.name}]", FitCode.UNRESOLVABLE)
            )
            named = np.array([info.name in only for info in attempt.columns.infos], dtype=np.bool_)
            codes = np.where(named, codes, elsewhere).astype(np.int32)
        return codes

    def _domain(self, rule: Filter, attempt: SessionAttempt) -> _Numbers:
        """Results that depend on anything."""
        found = rule.filter_codes(attempt.state, attempt.pod, attempt.columns)
        if found is not None:
            codes, statuses = found
            numbers = [0, *(self._number(reason_of(status, rule)) for status in statuses)]
            return np.array(numbers, dtype=np.int32)[codes]
        everywhere = np.ones(len(attempt.columns), dtype=np.bool_)
        fits = rule.filter_fitting(attempt.state, attempt.pod, attempt.columns, everywhere)
        return self._from(rule, attempt, fits)

    def _of_class(self, rule: Filter, task: Task, attempt: SessionAttempt) -> _Numbers:
        """Results that are kept for the pod's class."""
        columns = attempt.columns
        kept = self._kept.get(task.spec_class.id)
        if kept is None or kept.columns is not columns or kept.generation != columns.generation:
            codes = self._from(rule, attempt, rule.filter_columns(attempt.pod, columns))
        elif rule.scope is STATIC or kept.seen == len(columns.log):
            codes = kept.codes
        else:
            codes = kept.codes.copy()
            changed = set(columns.log[kept.seen :])
            self._fill(codes, changed, rule, attempt)
        self._kept[task.spec_class.id] = _Kept(columns, columns.generation, codes, len(columns.log))
        return codes

    def _from(self, rule: Filter, attempt: SessionAttempt, fits: Bools | None) -> _Numbers:
        """The codes of all nodes. `fits`: the result of the array form; it has no reasons. None: there is none."""
        codes: _Numbers = np.zeros(len(attempt.columns), dtype=np.int32)
        nodes: Iterable[int] = range(len(codes)) if fits is None else np.flatnonzero(~fits).tolist()
        self._fill(codes, nodes, rule, attempt)
        return codes

    def _fill(self, codes: _Numbers, nodes: Iterable[int], rule: Filter, attempt: SessionAttempt) -> None:
        call: Callable[..., Status] = rule.filter
        for i in nodes:
            status = expect(call(attempt.state, attempt.pod, attempt.columns.infos[i]), Status, rule.name, "Filter")
            codes[i] = 0 if status.ok else self._number(reason_of(status, rule))

    def _number(self, reason: Reason) -> int:
        number = self._numbers.get(reason)
        if number is None:
            self.reasons.append(reason)
            number = self._numbers[reason] = len(self.reasons)
        return number
