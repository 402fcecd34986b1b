"""When what runs is expected to end: per pod that holds capacity, its node, its amounts and the end of its limit.

A job that outlives its limit is expected to need half of it more, again and again; after four times its limit nothing
is expected of it any more. A job without a limit never ends, unless a limit for it is learned or configured.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.framework.incremental_state import state_of
from volcano_py.scheduler.framework.reservations.job_kinds import Kind, kind_of
from volcano_py.scheduler.framework.reservations.learned_run_times import LearnedRunTimes
from volcano_py.scheduler.framework.reservations.running_pods import RunningPods, holding, running_pods
from volcano_py.scheduler.framework.reservations.stated_limits import limit_of, unusable_limit
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.cluster import Cluster

Floats = NDArray[np.float64]
UNBELIEVED = 4.0
"""A job that has run for this multiple of its limit is not expected to end."""
_GROWTHS = 4
"""The number of growths after which a limit is more than `UNBELIEVED` times the stated one."""
_PARTS = 64
"""Into how many parts the sums of what becomes free are divided."""
_MORE = 1.5
"""By how much the limit of a job that outlives it grows each time."""


@dataclass
class ExpectedEnds:
    """The pods that hold capacity, in the order of their expected ends."""

    times: Floats
    nodes: NDArray[np.intp]
    amounts: Floats
    """By resource and pod."""
    ends: list[float] = field(default_factory=list)
    """The different times, without those that are not expected."""
    by_place: Floats = field(default_factory=lambda: np.zeros(0))
    """The times by the places of `RunningPods`."""

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

    def last(self, nodes: int) -> Floats:
        """When the last pod of each node ends; −inf: it has none."""
        found = np.full(nodes, -inf)
        np.maximum.at(found, self.nodes, self.times)
        return found

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
        return ExpectedEnds(times[order], nodes[order], amounts[:, order], ends, self.by_place)


@dataclass
class _Kept:
    """The last expected ends, and what they were computed from."""

    pods: RunningPods | None = None
    version: object = None
    ends: ExpectedEnds | None = None
    until: float = -inf
    """The first time at which they differ although no pod has changed; −inf: at any other time."""
    since: float = 0.0


@dataclass(frozen=True)
class Estimates:
    """How long jobs run whose users state no limit, or none that is believed."""

    default: float | None = None
    """If nothing else is known; None: never count on their end."""
    learned: LearnedRunTimes | None = None

    def limit(self, kind: Kind, stated: float | None) -> float | None:
        """How long a job is expected to run at most."""
        found = stated if self.learned is None else self.learned.limit(kind, stated)
        return self.default if found is None else found

    def of_pods(self, pods: RunningPods) -> Floats:
        """The same for each place; infinite if nothing is known."""
        limits = pods.limits
        if self.learned is not None and pods.numbers:
            found = [self.learned.expected(kind) for kind in pods.numbers]
            learned = np.array([nan if each is None else each for each, _ in found])
            believed = np.array([counts for _, counts in found], dtype=bool)
            limits = np.where(np.isnan(limits) | ~believed[pods.kinds], learned[pods.kinds], limits)
        return np.where(np.isnan(limits), inf if self.default is None else self.default, limits)


def expected_ends(session: Session, estimates: Estimates) -> ExpectedEnds:
    """Of all pods that hold capacity when the session opens.

    It is the same object as in an earlier session while nothing has changed.
    """
    now, pods = session.now, running_pods(session.cluster)
    kept = session.cluster.keep(_Kept)
    version = (pods.version, estimates.default, estimates.learned and estimates.learned.generation)
    same = kept.pods is pods and kept.version == version and (kept.since <= now < kept.until or now == kept.since)
    if kept.ends is not None and same:
        return kept.ends
    limits = estimates.of_pods(pods)
    began = np.minimum(np.where(np.isfinite(pods.started), pods.started, now), now)
    reach = limits.copy()
    for _ in range(_GROWTHS):
        reach[began + reach <= now] *= _MORE
    reach[now - began >= UNBELIEVED * limits] = inf
    times = np.where(np.isneginf(pods.started), now, began + reach)
    order = np.argsort(times, kind="stable")
    order = order[~np.isposinf(pods.started[order])]  # without places that no pod has
    in_order = times[order]
    ends = np.unique(in_order[in_order < inf]).tolist()
    found = ExpectedEnds(in_order, pods.nodes[order], pods.amounts[:, order], ends, times)
    kept.pods, kept.version, kept.ends, kept.since = pods, version, found, now
    moves = (np.isnan(pods.started) | ((pods.started > now) & (pods.started < inf))) & (limits < inf)
    changes = np.concatenate([times, began + UNBELIEVED * limits])
    kept.until = -inf if moves.any() else float(changes[changes > now].min(initial=inf))
    return found


def ends_of_job(cluster: Cluster, uid: str, ends: ExpectedEnds) -> dict[str, float]:
    """By the key of each pod of a job that holds capacity."""
    places = running_pods(cluster).of.get(uid, [])
    return {pod.key: float(ends.by_place[p]) for pod, p in zip(holding(cluster, uid), places, strict=True)}


def limit_in(session: Session, uid: str, estimates: Estimates) -> float | None:
    """How long a job is expected to run at most; None: nothing is known."""
    job = session.cluster.jobs.get(uid)
    if job is None:
        return None
    known = state_of(session.cluster, "limits", None, lambda _: _Limits(), _forget)
    if uid not in known:
        known[uid] = kind_of(job), limit_of(job)
    return estimates.limit(*known[uid])


def unusable_in(session: Session, uid: str) -> str:
    """Which limit of a job counts as none, and why; empty: none."""
    job = session.cluster.jobs.get(uid)
    if job is None:
        return ""
    known = state_of(session.cluster, "unusable limits", None, lambda _: dict[str, str](), _forget)
    if uid not in known:
        known[uid] = unusable_limit(job)
    return known[uid]


_Limits = dict[str, tuple[Kind, float | None]]
"""The kinds and limits that were read since a job changed last, by job."""


def _forget(known: dict[str, Any], cluster: Cluster, changed: set[str]) -> None:
    for uid in changed:
        known.pop(uid, None)
