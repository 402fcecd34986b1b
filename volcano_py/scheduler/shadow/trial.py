"""A trial: would ours have started what the live scheduler started?

Its pods are put back to Pending in the model, a cycle runs without assuming its plan, and the model is put back as it
is. Which state the live scheduler saw is not visible from outside: objects that came shortly before its decision may
have been too late for it. So several states are tried that it may have seen; ours agrees if it starts the job in one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from math import nextafter
from typing import NamedTuple

from volcano_py.api import core
from volcano_py.api.scheduling import PodGroup
from volcano_py.scheduler.explain.blocker import first_cause
from volcano_py.scheduler.explain.table import sentence_of
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.jobs import status as st
from volcano_py.scheduler.model.plan import Bind
from volcano_py.scheduler.run_once import CycleReport
from volcano_py.scheduler.shadow.observed import ObservedCluster, ObservedStart

Pods = dict[str, core.Pod | None]
"""By key; None: absent."""
_MOMENTS = 16
"""Changes before a start that the live scheduler may not have seen yet, at most."""
NO_REASON = "NotStated"
"""The code when ours does not start a job and states no reason."""


class Verdict(NamedTuple):
    """Ours about one start. `same_nodes`: pods that are on a node which ours would have given to an equal pod."""

    started: bool
    same_nodes: int = 0
    code: str = ""
    why: str = ""


class State(NamedTuple):
    """What differs from the model as it is."""

    pods: Pods
    groups: list[PodGroup]


def evaluate(model: ObservedCluster, start: ObservedStart, settle: float, decide: Callable[[], CycleReport]) -> Verdict:
    """What ours decides about a start. `decide` runs a cycle over the model without assuming its plan."""
    first: Verdict | None = None
    for state in states(model, start, settle):
        with changed(model, state):
            verdict = _verdict(model, start, decide())
        if verdict.started:
            return verdict
        first = first or verdict
    assert first is not None
    return first


def states(model: ObservedCluster, start: ObservedStart, settle: float) -> Iterator[State]:
    """States that the live scheduler may have seen, the most likely first."""
    mine: Pods = dict(start.pods)
    later = [s for s in model.starts.values() if s.first >= start.first and s is not start]
    groups = [s.group for s in (start, *later) if s.group is not None]
    waiting: Pods = {key: pod for s in later for key, pod in s.pods.items()}
    for moment in _moments(model, start, settle):
        ended: Pods = {e.pod.metadata.key: e.pod for e in model.ended if e.time > moment}
        late = [uid for uid, when in model.arrived.items() if when > moment and uid != start.job and uid in model.jobs]
        tasks = [task for uid in late for task in model.jobs[uid].tasks.values()]
        absent: Pods = {t.key: None for t in tasks if t.status == st.PENDING or t.key in waiting}
        yield State(ended | waiting | absent | mine, groups)
    # The other jobs of the same burst are where the live scheduler put them, with the capacity that there is now.
    waiting = {key: pod for s in later if s.first > start.first + settle for key, pod in s.pods.items()}
    yield State(waiting | mine, groups)


def _moments(model: ObservedCluster, start: ObservedStart, settle: float) -> list[float]:
    """Moments at which the live scheduler may have looked: when the start was seen, and before each change that came
    shortly before."""
    times = {e.time for e in model.ended} | {when for uid, when in model.arrived.items() if uid != start.job}
    before = sorted((t for t in times if start.first - settle < t <= start.first), reverse=True)
    return [start.first, *(nextafter(t, 0.0) for t in before[:_MOMENTS])]


@contextmanager
def changed(model: ObservedCluster, state: State) -> Iterator[None]:
    """The model in another state. The events of these changes are not noted."""
    clock, moved = model.clock, (model.dirty, model.jobs_moved, model.others_moved)
    tasks = {key: model.tasks.get(key) for key in state.pods}
    pods = {key: task.pod if task is not None else None for key, task in tasks.items()}
    groups = {group.metadata.key: _group(model, group.metadata.key) for group in state.groups}
    model.clock = None
    try:
        for group in state.groups:
            model.upsert("PodGroup", group)
        for key, pod in state.pods.items():
            _put(model, key, pod)
        yield
    finally:
        for key, pod in pods.items():
            _put(model, key, pod)
        for key, now in groups.items():
            if now is not None:
                model.upsert("PodGroup", now)
            else:
                model.remove("PodGroup", *key.split("/"))
        model.clock, (model.dirty, model.jobs_moved, model.others_moved) = clock, moved


def _put(model: Cluster, key: str, pod: core.Pod | None) -> None:
    # Removed first: the model ignores events that take a node from a pod.
    model.remove("Pod", *key.split("/"))
    if pod is not None:
        # A pod that cannot be used any more, because of another object, is absent as in the live model.
        with suppress(ValueError):
            model.upsert("Pod", pod)


def _group(model: Cluster, key: str) -> PodGroup | None:
    job = model.jobs.get(key)
    return job.pod_group if job is not None and not job.shadow else None


def _verdict(model: Cluster, start: ObservedStart, report: CycleReport) -> Verdict:
    ours = {f"{op.namespace}/{op.name}": op.node for op in report.plan if isinstance(op, Bind)}
    mine = {key: ours[key] for key in start.pods if key in ours}
    if mine:
        live = Counter((model.tasks[key].spec_class.id, node) for key, node in start.nodes.items())
        same = Counter((model.tasks[key].spec_class.id, node) for key, node in mine.items()) & live
        return Verdict(True, same.total())
    job = report.session.jobs.get(start.job)
    cause = first_cause(report.session, job) if job is not None else None
    if cause is None:
        return Verdict(False, 0, NO_REASON, "ours states no reason for this job")
    return Verdict(False, 0, cause.code, sentence_of(cause))
