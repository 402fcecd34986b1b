"""The model as text for the log: nodes, jobs and HyperNodes. Volcano: the cache dumper, on SIGUSR2."""

from __future__ import annotations

import resource
from collections.abc import Iterator

from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.model.jobs.job import Job
from volcano_py.scheduler.model.jobs.status import STATUS_NAMES
from volcano_py.scheduler.model.nodes.node_table import NodeTable
from volcano_py.scheduler.model.resource import Resource


def lines(model: Cluster) -> Iterator[str]:
    """One line per node, job and HyperNode, and one about memory."""
    table = model.nodes
    yield f"{len(table)} nodes, {len(model.jobs)} jobs, {len(model.tasks)} pods, {len(model.queues)} queues"
    for i, name in enumerate(table.names):
        idle, used = _column(table, "idle", i), _column(table, "used", i)
        yield f"node {name}: idle {idle}; used {used}; {len(model.on_node.get(name, {}))} pods"
    for uid, job in sorted(model.jobs.items()):
        yield _job(uid, job)
    for name, info in sorted(model.hyper_nodes.infos.items()):
        yield f"HyperNode {name}: tier {info.tier}, parent {info.parent or 'none'}, {len(info.nodes)} nodes"
    for name, problem in sorted(model.hyper_nodes.problems.items()):
        yield f"HyperNode {name}: {problem}"
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield f"memory: {peak / 1024:.0f} MiB at the peak"


def _column(table: NodeTable, name: str, node: int) -> Resource:
    """One node's amounts that are not 0."""
    column = getattr(table.numbers, name)[:, node]
    found = Resource(scalars={})
    for resource_name, row in table.rows.items():
        if column[row]:
            found[resource_name] = column.item(row)
    return found


def _job(uid: str, job: Job) -> str:
    phase = job.pod_group.status.phase or "Pending" if job.pod_group is not None else "without PodGroup"
    counts = ", ".join(f"{count} {STATUS_NAMES[status]}" for status, count in enumerate(job.counts) if count)
    return f"job {uid}: queue {job.queue}, {phase}, minMember {job.min_available}; {counts or 'no pods'}"
