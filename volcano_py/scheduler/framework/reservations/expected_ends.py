"""When what runs is expected to end: per pod that holds capacity, its node, its amounts and the end of its limit.

A job that outlives its limit is expected to need half of it more, again and again; after four times its limit nothing
is expected of it any more. A job without a limit never ends, unless the configuration has a limit for such jobs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from volcano_py.api.meta import parse_time
from volcano_py.scheduler.framework.incremental_state import state_of
from volcano_py.scheduler.framework.reservations.stated_limits import limit_of
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model import status as st
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.spec_class import SpecClass
from volcano_py.scheduler.model.task import Task

Floats = NDArray[np.float64]
UNBELIEVED = 4.0
"""A job that has run for so many times its limit is not expected to end."""
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

    def freed(self, until: float, nodes: int) -> Floats:
        """The capacity that is expected to be free by a time, by resource and node."""
        count = int(np.searchsorted(self.times, until, side="right"))
        at = self.nodes[:count]
        return np.array([np.bincount(at, row[:count], minlength=nodes) for row in self.amounts]).reshape(-1, nodes)

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


def expected_end(started: float, limit: float | None, now: float) -> float:
    """When a job is expected to end that began at a time."""
    if limit is None:
        return inf
    began = min(started, now)  # a start in the future is a clock that jumped
    reach = limit
    while began + reach <= now:
        if now - began >= UNBELIEVED * limit:
            return inf
        reach *= _MORE
    return began + reach


def expected_ends(session: Session, default: float | None) -> ExpectedEnds:
    """Of all pods that hold capacity when the session opens. `default`: the limit of jobs that state none."""
    cluster, table, now = session.cluster, session.table, session.now
    times: list[float] = []
    nodes: list[int] = []
    classes: list[SpecClass] = []
    for limit, held in _running(cluster).values():
        known: dict[float | None, float] = {}
        for pod in held:
            node = table.index.get(pod.node)
            if node is None:
                continue
            end = now if pod.terminates else known.get(pod.started)
            if end is None:
                began = now if pod.started is None else pod.started
                end = known[pod.started] = expected_end(began, default if limit is None else limit, now)
            times.append(end)
            nodes.append(node)
            classes.append(pod.spec_class)
    order = np.argsort(np.array(times), kind="stable")
    amounts = np.zeros((len(table.rows), len(times)))
    for i, at in enumerate(order.tolist()):
        amounts[:, i] = classes[at].vector(table)
    in_order = np.array(times, dtype=np.float64)[order]
    ends = np.unique(in_order[in_order < inf]).tolist()
    return ExpectedEnds(in_order, np.array(nodes, dtype=np.intp)[order], amounts, ends)


def limit_in(session: Session, task: Task, default: float | None) -> float | None:
    """The limit of a task's job."""
    known = session.cluster.keep(_Limits).of
    job = session.cluster.jobs.get(task.job)
    if job is None:
        return None
    kept = known.get(task.job)
    version = (job.pod_group, len(job.tasks))
    if kept is None or kept[0] is not version[0] or kept[1] != version[1]:
        if len(known) > _MOST_LIMITS:
            known.clear()
        kept = known[task.job] = (*version, limit_of(job))
    limit: float | None = kept[2]
    return default if limit is None else limit


_MOST_LIMITS = 100_000


@dataclass
class _Limits:
    """By job: its PodGroup, its number of pods, its limit."""

    of: dict[str, tuple[object, int, float | None]] = field(default_factory=dict)


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
