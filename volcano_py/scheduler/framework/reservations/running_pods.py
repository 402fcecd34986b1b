"""The pods that hold capacity, as arrays that are updated for the jobs that changed. Not in Volcano.

A job has a list of places in the arrays. Places that no pod has hold nothing, and never end.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf, nan

import numpy as np
from numpy.typing import NDArray

from volcano_py.api.meta import parse_time
from volcano_py.scheduler.framework.incremental_state import PluginStates, state_of
from volcano_py.scheduler.framework.reservations.job_kinds import Kind, kind_of
from volcano_py.scheduler.framework.reservations.stated_limits import limit_of
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.jobs.task import Task

Floats = NDArray[np.float64]
_NAME = "running pods"
_MOST_KINDS = 4096
_SPARE = 1.25
"""The arrays grow by this factor."""


@dataclass
class RunningPods:
    """By place: the node, the start, the limit and the amounts of a pod."""

    nodes: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    started: Floats = field(default_factory=lambda: np.zeros(0))
    """Seconds since the epoch; NaN: it does not run yet; −inf: it terminates; inf: no pod has the place."""
    limits: Floats = field(default_factory=lambda: np.zeros(0))
    """NaN: none is stated."""
    kinds: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    """The kind of the job, as a number of `numbers`."""
    amounts: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    """By resource and place."""
    numbers: dict[Kind, int] = field(default_factory=dict)
    of: dict[str, list[int]] = field(default_factory=dict)
    """The places of each job."""
    free: list[int] = field(default_factory=list)
    version: int = 0
    """Grows with each change."""

    def replace(self, cluster: Cluster, uid: str) -> None:
        """Read a job again."""
        job = cluster.jobs.get(uid)
        index, held = cluster.nodes.index, holding(cluster, uid)
        before = self.of.get(uid, [])
        limit = (limit_of(job) if job is not None and held else None) or nan
        nodes = np.array([index[task.node] for task in held], dtype=np.intp)
        started = np.array([start_of(task) for task in held])
        amounts = (
            np.array([task.spec_class.vector(cluster.nodes) for task in held]).reshape(len(held), len(self.amounts)).T
        )
        kind = self.numbers.setdefault(kind_of(job), len(self.numbers)) if job is not None and held else 0
        if len(before) == len(held) and (not held or self._equals(before, nodes, started, limit, kind, amounts)):
            return
        self.version += 1
        self.started[before] = inf
        self.amounts[:, before] = 0.0
        self.of.pop(uid, None)
        self.free += reversed(before)
        if not held:
            return
        if len(self.free) < len(held):
            self._grow(len(held))
        places = [self.free.pop() for _ in held]
        self.nodes[places], self.started[places], self.limits[places] = nodes, started, limit
        self.kinds[places] = kind
        self.amounts[:, places] = amounts
        self.of[uid] = places

    def _equals(
        self, places: list[int], nodes: NDArray[np.intp], started: Floats, limit: float, kind: int, amounts: Floats
    ) -> bool:
        return (
            self.kinds[places[0]] == kind
            and np.array_equal(self.nodes[places], nodes)
            and np.array_equal(self.started[places], started, equal_nan=True)
            and np.array_equal(self.limits[places], np.full(len(places), limit), equal_nan=True)
            and np.array_equal(self.amounts[:, places], amounts)
        )

    def held(self) -> dict[str, list[tuple[float, ...]]]:
        """By job: what its pods hold, to compare two states."""
        columns = np.vstack([self.nodes, self.started, np.nan_to_num(self.limits, nan=-1.0), self.amounts])
        columns = np.nan_to_num(columns, nan=-1.0)
        return {uid: sorted(map(tuple, columns[:, places].T.tolist())) for uid, places in self.of.items()}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RunningPods) and self.held() == other.held()

    def _grow(self, more: int) -> None:
        size = len(self.nodes)
        new = max(int(size * _SPARE) + 64 - size, more)
        self.nodes = np.concatenate([self.nodes, np.zeros(new, dtype=np.intp)])
        self.started = np.concatenate([self.started, np.full(new, inf)])
        self.limits = np.concatenate([self.limits, np.full(new, nan)])
        self.kinds = np.concatenate([self.kinds, np.zeros(new, dtype=np.intp)])
        self.amounts = np.concatenate([self.amounts, np.zeros((len(self.amounts), new))], axis=1)
        self.free = [*reversed(range(size, size + new)), *self.free]


def holding(cluster: Cluster, uid: str) -> list[Task]:
    """The pods of a job that hold capacity, in the order of their places."""
    job, index = cluster.jobs.get(uid), cluster.nodes.index
    return [] if job is None else [t for t in job.tasks.values() if t.takes_capacity and t.node in index]


def running_pods(cluster: Cluster) -> RunningPods:
    """What holds capacity now."""
    table = cluster.nodes
    version = (table.names_generation, len(table.rows))
    found = state_of(cluster, _NAME, version, _build, _apply, cluster.check_states)
    if len(found.numbers) > _MOST_KINDS + 4 * len(found.of):  # mostly of jobs that have ended
        del cluster.keep(PluginStates).of[_NAME]
        found = state_of(cluster, _NAME, version, _build, _apply)
    return found


def _build(cluster: Cluster) -> RunningPods:
    state = RunningPods(amounts=np.zeros((len(cluster.nodes.rows), 0)))
    _apply(state, cluster, set(cluster.jobs))
    return state


def _apply(state: RunningPods, cluster: Cluster, jobs: set[str]) -> None:
    for uid in sorted(jobs):
        state.replace(cluster, uid)


def start_of(task: Task) -> float:
    """Seconds since the epoch; NaN: the pod does not run yet; −inf: it terminates."""
    if task.status == st.RELEASING:
        return -inf
    text = task.pod.status.start_time
    return parse_time(text) if text else nan
