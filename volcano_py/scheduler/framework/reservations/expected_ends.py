"""When what runs is expected to end: per pod that holds capacity, its node, its amounts and the end of its limit.

A job that outlives its limit is expected to need half of it more, again and again; after four times its limit nothing
is expected of it any more. A job without a limit never ends, unless the configuration has a limit for such jobs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf, nan
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from volcano_py.api.meta import parse_time
from volcano_py.scheduler.framework.incremental_state import state_of
from volcano_py.scheduler.framework.reservations.stated_limits import limit_of
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.spec_class import SpecClass
from volcano_py.scheduler.model.jobs.task import Task

Floats = NDArray[np.float64]
UNBELIEVED = 4.0
"""A job that has run for this multiple of its limit is not expected to end."""
_GROWTHS = 4
"""The number of growths after which a limit is more than `UNBELIEVED` times the stated one."""
_PARTS = 64
"""Into how many parts the sums of what becomes free are divided."""
_MORE = 1.5
"""By how much the limit of a job that outlives it grows each time."""


class Held(NamedTuple):
    """What one pod holds."""

    node: str
    spec_class: SpecClass
    started: float | None
    """Seconds since the epoch; None: the pod does not run yet."""
    terminates: bool


Running = dict[str, tuple[float | None, list[Held]]]
"""By job: its limit, and what its pods hold."""


@dataclass
class ExpectedEnds:
    """The pods that hold capacity, in the order of their expected ends."""

    times: Floats
    nodes: NDArray[np.intp]
    amounts: Floats
    """By resource and pod."""
    ends: list[float] = field(default_factory=list)
    """The different times, without those that are not expected."""

    _sums: list[Floats] = field(default_factory=list)
    """What the first pods free, by resource and node, at the beginning of each of `_PARTS` parts."""

    def freed(self, until: float, nodes: int) -> Floats:
        """The capacity that is expected to be free by a time, by resource and node."""
        count = int(np.searchsorted(self.times, until, side="right"))
        step = max(1, -(-len(self.times) // _PARTS))
        if not self._sums:
            total = np.zeros((len(self.amounts), nodes))
            for begin in range(0, len(self.times) + 1, step):
                self._sums.append(total)
                total = total + self._between(begin, begin + step, nodes)
        part = count // step
        return self._sums[part] + self._between(part * step, count, nodes)

    def _between(self, begin: int, end: int, nodes: int) -> Floats:
        at = self.nodes[begin:end]
        return np.array([np.bincount(at, row[begin:end], minlength=nodes) for row in self.amounts]).reshape(-1, nodes)

    def with_pods(self, pods: Iterable[tuple[int, Floats, float]]) -> ExpectedEnds:
        """With further pods: node, amounts and expected end of each."""
        added = list(pods)
        if not added:
            return self
        times = np.concatenate([self.times, [end for _, _, end in added]])
        order = np.argsort(times, kind="stable")
        nodes = np.concatenate([self.nodes, np.array([node for node, _, _ in added], dtype=np.intp)])
        amounts = np.concatenate([self.amounts, np.array([of for _, of, _ in added]).T], axis=1)
        ends = sorted({*self.ends, *(end for _, _, end in added if end < inf)})
        return ExpectedEnds(times[order], nodes[order], amounts[:, order], ends)


@dataclass
class _Columns:
    """What runs, as arrays, until a job or a node changes."""

    version: object = None
    nodes: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    started: Floats = field(default_factory=lambda: np.zeros(0))
    """NaN: it does not run yet; −inf: it terminates."""
    limits: Floats = field(default_factory=lambda: np.zeros(0))
    """NaN: none is stated."""
    amounts: Floats = field(default_factory=lambda: np.zeros((0, 0)))


def expected_ends(session: Session, default: float | None) -> ExpectedEnds:
    """Of all pods that hold capacity when the session opens. `default`: the limit of jobs that state none."""
    now, kept = session.now, _columns(session)
    limits = np.where(np.isnan(kept.limits), inf if default is None else default, kept.limits)
    began = np.minimum(np.where(np.isnan(kept.started), now, kept.started), now)
    reach = limits.copy()
    for _ in range(_GROWTHS):
        reach[began + reach <= now] *= _MORE
    reach[now - began >= UNBELIEVED * limits] = inf
    times = np.where(np.isneginf(kept.started), now, began + reach)
    order = np.argsort(times, kind="stable")
    in_order = times[order]
    ends = np.unique(in_order[in_order < inf]).tolist()
    return ExpectedEnds(in_order, kept.nodes[order], kept.amounts[:, order], ends)


def _columns(session: Session) -> _Columns:
    cluster, table = session.cluster, session.table
    kept = cluster.keep(_Columns)
    running = _running(cluster)
    version = (cluster.job_changes.position, table.spec_generation, tuple(table.names), len(table.rows))
    if kept.version != version:
        rows = [
            (node, -inf if pod.terminates else nan if pod.started is None else pod.started, limit, pod.spec_class)
            for limit, held in running.values()
            for pod in held
            if (node := table.index.get(pod.node)) is not None
        ]
        kept.version = version
        kept.nodes = np.array([row[0] for row in rows], dtype=np.intp)
        kept.started = np.array([row[1] for row in rows], dtype=np.float64)
        kept.limits = np.array([nan if row[2] is None else row[2] for row in rows], dtype=np.float64)
        kept.amounts = np.zeros((len(table.rows), len(rows)))
        for i, row in enumerate(rows):
            kept.amounts[:, i] = row[3].vector(table)
    return kept


def limit_in(session: Session, task: Task, default: float | None) -> float | None:
    """The limit of a task's job."""
    job = session.cluster.jobs.get(task.job)
    if job is None:
        return None
    known = state_of(session.cluster, "limits", None, lambda _: _Limits(), _forget)
    if task.job not in known:
        known[task.job] = limit_of(job)
    limit = known[task.job]
    return default if limit is None else limit


_Limits = dict[str, float | None]
"""The limits that were read since a job changed last, by job."""


def _forget(known: _Limits, cluster: Cluster, changed: set[str]) -> None:
    for uid in changed:
        known.pop(uid, None)


def _running(cluster: Cluster) -> Running:
    """Updated for the jobs that changed."""
    return state_of(cluster, "expected ends", None, _build, _apply)


def _build(cluster: Cluster) -> Running:
    state: Running = {}
    _apply(state, cluster, set(cluster.jobs))
    return state


def _apply(state: Running, cluster: Cluster, jobs: set[str]) -> None:
    for uid in sorted(jobs):
        job = cluster.jobs.get(uid)
        held = [_held(task) for task in job.tasks.values() if task.takes_capacity] if job is not None else []
        if job is not None and held:
            state[uid] = limit_of(job), held
        else:
            state.pop(uid, None)


def _held(task: Task) -> Held:
    text = task.pod.status.start_time
    began = parse_time(text) if text else None
    return Held(task.node, task.spec_class, began, task.status == st.RELEASING)
