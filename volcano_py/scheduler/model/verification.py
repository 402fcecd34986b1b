"""Comparison of what the model keeps up to date, event by event, with what its tasks add up to. For tests, and for a
scheduler with --verify-incremental. Not in Volcano.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.job import Job
from volcano_py.scheduler.model.node_table import NodeNumbers
from volcano_py.scheduler.model.resource import EPS
from volcano_py.scheduler.model.status import RELEASING

_RELATIVE = 1e-9
"""Sums of amounts that are too large for exact arithmetic may differ by this part."""
_SUMS = ("idle", "used", "releasing", "kube_requested", "foreign", "kube_nonzero", "kube_pods")
_COUNTS = ("counts", "best_effort_counts", "gated", "gated_by_queue")


def differences(cluster: Cluster) -> Iterator[str]:
    """What differs from the sums over all tasks: nothing, if every update was correct."""
    yield from _of_nodes(cluster)
    yield from _of_jobs(cluster)
    for task in cluster.tasks.values():
        if cluster.statuses[task.slot] != task.status:
            yield f"pod {task.key}: status {cluster.statuses[task.slot]} in the column, {task.status} in the task"


def _of_nodes(cluster: Cluster) -> Iterator[str]:
    table = cluster.nodes
    rows, count = len(table.rows), len(table)
    added = NodeNumbers(rows, count)
    added.idle[:] = table.numbers.allocatable[:rows, :count]
    for name, here in cluster.on_node.items():
        node = table.index.get(name)
        if node is None:
            continue
        for task in here.values():
            request = task.spec_class.vector(table)
            added.idle[:, node] -= request
            added.used[:, node] += request
            added.kube_requested[:, node] += request
            added.kube_nonzero[:, node] += task.spec_class.nonzero
            added.kube_pods[node] += 1
            if not task.job:
                added.foreign[:, node] += request
            if task.status == RELEASING:
                added.releasing[:, node] += request
    for column in _SUMS:
        expected: NDArray[np.float64] = getattr(added, column)
        kept = getattr(table.numbers, column)[..., :count]
        kept = kept if kept.ndim == 1 else kept[: len(expected)]
        wrong = ~np.isclose(kept, expected, rtol=_RELATIVE, atol=EPS)
        for at in np.flatnonzero(wrong if wrong.ndim == 1 else wrong.any(axis=0)):
            sums = kept[..., at].tolist(), expected[..., at].tolist()
            yield f"node {table.names[at]}: {column} is {sums[0]}, its pods add up to {sums[1]}"


def _of_jobs(cluster: Cluster) -> Iterator[str]:
    for uid, job in cluster.jobs.items():
        added = Job(uid)
        for task in job.tasks.values():
            added.add(task)
        for name in _COUNTS:
            kept, expected = _plain(getattr(job, name)), _plain(getattr(added, name))
            if kept != expected:
                yield f"job {uid}: {name} is {kept}, its pods add up to {expected}"
        for name in ("allocated", "total_request"):
            sum_, total = getattr(job, name), getattr(added, name)
            names = {*sum_.keys(), *total.keys()}
            if any(not np.isclose(sum_[d], total[d], rtol=_RELATIVE, atol=EPS) for d in names):
                yield f"job {uid}: {name} is {sum_.as_dict()}, its pods add up to {total.as_dict()}"


def _plain(counts: Any) -> Any:
    """A count, or counts as a list: those of no tasks are a tuple."""
    return list(counts) if isinstance(counts, tuple) else counts
