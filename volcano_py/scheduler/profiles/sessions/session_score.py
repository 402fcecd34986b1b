"""The scores of a profile in a session: their weighted sum for the candidates of a task. Kubernetes:
RunScorePlugins."""

from __future__ import annotations

from typing import Literal

import numpy as np

from volcano_py.scheduler.framework.search.node_rules import DOMAIN, STATIC, Floats, Indices, Scope
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.profiles.attempts.scoring import in_range, normalize, normalized
from volcano_py.scheduler.profiles.columns import NodesAt, SomeColumns
from volcano_py.scheduler.profiles.faults import PluginFault, expect
from volcano_py.scheduler.profiles.plugin_api.extension_points import Score
from volcano_py.scheduler.profiles.plugin_api.status import Code, Status
from volcano_py.scheduler.profiles.sessions.session_attempt import Attempts, SessionAttempt
from volcano_py.scheduler.rules.arrays import Ints


class ProfileScore:
    """All scores of one profile."""

    scope: Literal[Scope.DOMAIN] = DOMAIN
    batch = True

    def __init__(self, attempts: Attempts) -> None:
        self.name = f"profile {attempts.profile}"
        self._attempts = attempts

    def applies(self, task: Task) -> bool:
        return self._attempts.concerns(task)

    def constant(self, task: Task) -> float | None:
        return None

    def score(self, task: Task, candidates: Indices) -> Floats:
        attempt = self._attempts.of(task)
        columns = attempt.columns
        at: Indices = columns.at_model(candidates)
        total: Floats = np.zeros(len(at))
        for plugin, weight in self._attempts.selection.score:
            if not attempt.state.concerns(plugin):
                continue
            try:
                total += weight * _scores(plugin, attempt, at)
            except Exception as e:
                self._attempts.fault(plugin, "Score", e, attempt.pod)
        return total


def _scores(plugin: Score, attempt: SessionAttempt, at: Indices) -> Ints:
    """The normalized scores of one plugin for some columns."""
    state, pod, columns = attempt.state, attempt.pod, attempt.columns
    nodes = NodesAt(columns.infos, lambda: at, len(at))
    status = expect(plugin.pre_score(state, pod, nodes), Status, plugin.name, "PreScore")
    if status.code is Code.SKIP:
        return np.zeros(len(at), dtype=np.int64)
    if not status.ok:
        raise PluginFault(plugin.name, "PreScore", status.message or status.code.value)
    raw: Ints | None = None
    if plugin.scope is STATIC:
        everywhere = plugin.score_columns(pod, columns)
        raw = None if everywhere is None else everywhere[at]
    elif plugin.scope is not DOMAIN:
        raw = plugin.score_columns(pod, SomeColumns(columns, at))
    if raw is None:
        return normalized(plugin, state, pod, columns, at)
    if not plugin.normalizes():
        return in_range(raw, plugin.name)
    return normalize(plugin, state, pod, nodes, dict(zip((node.name for node in nodes), raw.tolist(), strict=True)))
