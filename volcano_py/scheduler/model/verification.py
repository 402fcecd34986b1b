"""Comparison of what the model keeps up to date, event by event, with what its tasks add up to, and its correction. For
the cache audit, for tests, and for a scheduler with --verify-incremental. Not in Volcano.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.jobs.job import Job
from volcano_py.scheduler.model.jobs.spec_class import SpecClass
from volcano_py.scheduler.model.jobs.status import RELEASING
from volcano_py.scheduler.model.nodes.amounts import allocatable, oversubscribed
from volcano_py.scheduler.model.nodes.node_table import NodeNumbers
from volcano_py.scheduler.model.resource import EPS
from volcano_py.scheduler.model.resource_names import CPU, MEMORY

_RELATIVE = 1e-9
"""Sums of amounts that are too large for exact arithmetic may differ by this part."""
_SUMS = ("idle", "used", "releasing", "kube_requested", "foreign", "kube_nonzero", "kube_pods")
_COUNTS = ("counts", "best_effort_counts", "gated", "gated_by_queue")


class StateDifference(NamedTuple):
    """A number of the model that its tasks do not add up to. `kind`: node, job or pod."""

    kind: str
    name: str
    field: str
    kept: Any
    expected: Any

    @property
    def text(self) -> str:
        if self.kind == "pod":
            return f"pod {self.name}: {self.field} {self.kept} in the model, {self.expected} in the task"
        source = "its Node object sets" if self.field == "allocatable" else "its pods add up to"
        return f"{self.kind} {self.name}: {self.field} is {self.kept}, {source} {self.expected}"


def differences(cluster: Cluster) -> Iterator[StateDifference]:
    """What differs from the sums over all tasks: nothing, if every update was correct."""
    yield from of_nodes(cluster, cluster.nodes.names)
    yield from of_jobs(cluster, cluster.jobs)
    yield from of_tasks(cluster, cluster.tasks)


def of_nodes(cluster: Cluster, names: Iterable[str]) -> Iterator[StateDifference]:
    """The differences in the columns of some nodes."""
    table = cluster.nodes
    known = [name for name in names if name in table.index]
    for name in known:
        yield from _of_allocatable(cluster, name, table.index[name])
        for key, task in cluster.on_node.get(name, {}).items():
            if cluster.tasks.get(key) is not task:
                yield StateDifference("node", name, "pods", f"{key} of uid {task.uid}", "it is no pod of the model")
    columns = [table.index[name] for name in known]
    added = _added(cluster, known, columns)
    for field in _SUMS:
        expected: NDArray[np.float64] = getattr(added, field)
        kept: NDArray[np.float64] = getattr(table.numbers, field)[..., columns]
        kept = kept if kept.ndim == 1 else kept[: len(expected)]
        differs = abs(kept - expected) > EPS + _RELATIVE * abs(expected)
        for i in np.flatnonzero(np.atleast_2d(differs).any(axis=0)).tolist():
            yield StateDifference("node", known[i], field, kept[..., i].tolist(), expected[..., i].tolist())


def _added(cluster: Cluster, names: Sequence[str], columns: Sequence[int]) -> NodeNumbers:
    """What the tasks on some nodes add up to, with one operation for all equal tasks."""
    table = cluster.nodes
    added = NodeNumbers(len(table.rows), len(names))
    added.idle[:] = table.numbers.allocatable[: len(table.rows), columns]
    equal: dict[tuple[int, bool, bool], tuple[SpecClass, list[int]]] = {}
    for i, name in enumerate(names):
        for task in cluster.on_node.get(name, {}).values():
            kind = (task.spec_class.id, bool(task.job), task.status == RELEASING)
            if kind not in equal:
                equal[kind] = task.spec_class, []
            equal[kind][1].append(i)
    for (_, of_job, releasing), (spec_class, places) in equal.items():
        at, counts = np.unique(places, return_counts=True)
        request = spec_class.vector(table)[:, None] * counts
        added.idle[:, at] -= request
        added.used[:, at] += request
        added.kube_requested[:, at] += request
        added.kube_nonzero[:, at] += spec_class.nonzero[:, None] * counts
        added.kube_pods[at] += counts
        if not of_job:
            added.foreign[:, at] += request
        if releasing:
            added.releasing[:, at] += request
    return added


def _of_allocatable(cluster: Cluster, name: str, node: int) -> Iterator[StateDifference]:
    table = cluster.nodes
    have = allocatable(table.objects[node], cluster.claims.storage.limits(name), cluster.claims.amounts.of(name))
    expected = have.as_dict()
    for resource, extra in zip((CPU, MEMORY), oversubscribed(table.objects[node]), strict=True):
        expected[resource] = expected.get(resource, 0.0) + extra
    column = table.numbers.allocatable[:, node]
    kept = {r: column.item(row) for r, row in table.rows.items()}
    if any(abs(kept.get(r, 0.0) - expected.get(r, 0.0)) > EPS for r in kept.keys() | expected):
        shown = {r: amount for r, amount in kept.items() if amount or r in expected}
        yield StateDifference("node", name, "allocatable", shown, expected)


def of_jobs(cluster: Cluster, uids: Iterable[str]) -> Iterator[StateDifference]:
    """The differences in the counts and sums of some jobs."""
    for uid in uids:
        job = cluster.jobs.get(uid)
        if job is None:
            continue
        added = Job(uid)
        for task in job.tasks.values():
            added.add(task)
        for name in _COUNTS:
            kept, expected = _plain(getattr(job, name)), _plain(getattr(added, name))
            if kept != expected:
                yield StateDifference("job", uid, name, kept, expected)
        for name in ("allocated", "total_request"):
            sum_, total = getattr(job, name), getattr(added, name)
            names = {*sum_.keys(), *total.keys()}
            if any(abs(sum_[d] - total[d]) > EPS + _RELATIVE * abs(total[d]) for d in names):
                yield StateDifference("job", uid, name, sum_.as_dict(), total.as_dict())


def of_tasks(cluster: Cluster, keys: Iterable[str]) -> Iterator[StateDifference]:
    """Some pods whose status, node or job differs between the model's parts."""
    for key in keys:
        task = cluster.tasks.get(key)
        if task is None:
            continue
        if cluster.statuses[task.slot] != task.status:
            yield StateDifference("pod", key, "status", cluster.statuses[task.slot], task.status)
        if task.takes_capacity and cluster.on_node.get(task.node, {}).get(key) is not task:
            yield StateDifference("pod", key, "node", "it is not counted", task.node)
        if task.job and (task.job not in cluster.jobs or cluster.jobs[task.job].tasks.get(key) is not task):
            yield StateDifference("pod", key, "job", "it is not a member", task.job)


def correct(cluster: Cluster, found: StateDifference) -> None:
    """Derive the numbers of the object again from its tasks."""
    cluster.dirty = True
    match found.kind:
        case "node":
            cluster.count_node_again(found.name)
        case "job":
            cluster.count_job_again(found.name)
        case "pod":
            task = cluster.tasks[found.name]
            cluster.statuses[task.slot] = task.status
            if task.takes_capacity:
                cluster.on_node.setdefault(task.node, {})[task.key] = task
                cluster.count_node_again(task.node)
            if task.job in cluster.jobs:
                cluster.jobs[task.job].tasks[task.key] = task
                cluster.count_job_again(task.job)


def _plain(counts: Any) -> Any:
    """A count, or counts as a list: those of no tasks are a tuple."""
    return list(counts) if isinstance(counts, tuple) else counts
