"""Why no node accepts a task, filter by filter, and which node comes closest. Not in Volcano.

The order of the filters begins with those whose result is stable (selector, taints, size) and ends with those that
depend on other pods. The first blocker is the filter that rejects the last remaining nodes: nodes that an earlier
filter rejects do not count for it. All other filters follow with their numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.explain import table
from volcano_py.scheduler.explain.pod_rules import affinity_text, spread_text
from volcano_py.scheduler.explain.reasons import TableReason
from volcano_py.scheduler.explain.reserved_nodes import reserved_for
from volcano_py.scheduler.explain.selectors import selector_text, untolerated
from volcano_py.scheduler.framework.cause import Cause, Value
from volcano_py.scheduler.framework.search.node_rules import Filter
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.resource import EPS
from volcano_py.scheduler.model.resource_names import ATTACHABLE_PREFIX, CPU, PODS

Bools = NDArray[np.bool_]

_ORDER: dict[str, tuple[int, TableReason]] = {
    "NodeAffinity": (1, table.NODE_SELECTOR),
    "NodeUnschedulable": (2, table.NODE_UNSCHEDULABLE),
    "TaintToleration": (3, table.NODE_TAINT),
    "VolumeZone": (4, table.VOLUME),
    "VolumeMatching": (4, table.VOLUME),
    "VolumeBinding": (4, table.VOLUME),
    "PodNumber": (8, table.NODE_PODS),
    "NodePorts": (9, table.NODE_PORTS),
    "AdvanceReservation": (9, table.NODE_IN_RESERVATION),
    "Reservation": (9, table.NODE_RESERVED),
    "NodeVolumeLimits": (10, table.VOLUME_LIMIT),
    "VolumeRestrictions": (10, table.VOLUME),
    "DynamicResources": (11, table.DEVICES),
    "GpuShare": (11, table.DEVICES),
    "hamivgpu": (11, table.DEVICES),
    "numa-aware": (12, table.NUMA),
    "InterPodAffinity": (13, table.POD_AFFINITY),
    "PodTopologySpread": (14, table.TOPOLOGY_SPREAD),
}
_ORDER_OF_PLUGIN: dict[str, tuple[int, TableReason]] = {"deviceshare": (11, table.DEVICES)}
"""Plugins with a filter for each type of device."""
_PLUGIN = (5, table.PLUGIN_FILTER)
_TOO_SMALL, _RESOURCES, _PODS, _VOLUMES = 6, 7, 8, 10
_LASTING = (1, 4, _TOO_SMALL)
"""The ranks of selectors, volumes and sizes: only a change of the pod or of the nodes helps."""


class FilterStep(NamedTuple):
    """One filter, or a lack of capacity, over all nodes."""

    rank: int
    reason: TableReason
    rejected: Bools
    plugin: str
    problem: str


def node_causes(session: Session, task: Task) -> list[Cause]:
    """Why no node accepts the task, the first blocker first; empty if some node does."""
    count = len(session.table)
    if not count:
        return [table.NO_NODES.because()]
    steps = _merged(sorted(_steps(session, task), key=lambda s: s.rank))
    lasting = [s for s in steps if s.rank in _LASTING]
    if lasting and np.logical_or.reduce([s.rejected for s in lasting]).all():
        # what does not change by waiting comes first, if it is sufficient by itself
        steps = [*lasting, *(s for s in steps if s.rank not in _LASTING)]
    left = np.ones(count, dtype=bool)
    blocker: FilterStep | None = None
    before = left
    for step in steps:
        before, left = left, left & ~step.rejected
        if not left.any():
            blocker = step
            break
    if blocker is None:
        return []
    rejections = np.sum([s.rejected for s in steps], axis=0)
    ordered = [blocker, *(s for s in steps if s is not blocker and s.rejected.any())]
    return [_cause(session, task, s, rejections, before if s is blocker else None) for s in ordered]


def _merged(steps: list[FilterStep]) -> list[FilterStep]:
    """Steps in order, with equal reasons and problems merged: volume limits are filters and resources."""
    found: dict[tuple[str, str], FilterStep] = {}
    for step in steps:
        problem = step.problem if "problem" in step.reason.fields else ""
        key = (step.reason.code, problem)
        known = found.get(key)
        found[key] = step if known is None else known._replace(rejected=known.rejected | step.rejected)
    return list(found.values())


def _steps(session: Session, task: Task) -> Iterator[FilterStep]:
    placement = session.placement
    if placement.shard is not None and placement.shard_is_hard:
        yield FilterStep(0, table.NOT_IN_SHARD, ~placement.shard, "", "")
    for plugin, f in placement.filters:
        if f.applies(task):
            codes = placement.codes(f, task)
            rejected = codes != 0
            if rejected.any():
                rank, reason = _ORDER.get(f.name) or _ORDER_OF_PLUGIN.get(plugin, _PLUGIN)
                yield FilterStep(rank, reason, rejected, plugin, _most_frequent(f, codes[rejected]))
    view, n = placement.view(task), session.numbers
    rows = _rows(session, task)
    need = view.vector[rows, None]
    small: Bools = np.logical_or.reduce(need - n.allocatable[rows] >= EPS)
    if small.any():
        yield FilterStep(_TOO_SMALL, table.NODE_TOO_SMALL, small, "", "")
    short = _short(session, task, rows)
    if short.any():
        yield FilterStep(_RESOURCES, table.NODE_RESOURCES, short, "", "")
    attached = _short(session, task, [row for row in view.rows if _is_volume_row(session, row)])
    if attached.any():
        yield FilterStep(_VOLUMES, table.VOLUME_LIMIT, attached, "", "")
    crowded = ~(view.future | short | attached)
    if crowded.any():
        yield FilterStep(_PODS, table.NODE_PODS, crowded, "", "")


def _short(session: Session, task: Task, rows: list[int]) -> Bools:
    """The nodes that have too little of some resources, even after releasing tasks have ended."""
    n = session.numbers
    need = session.placement.view(task).vector[rows, None]
    short: Bools = np.logical_or.reduce(need - (n.idle[rows] + n.releasing[rows] - n.pipelined[rows]) >= EPS)
    return short


def _rows(session: Session, task: Task) -> list[int]:
    """The rows of the resources that must fit, without pods and volumes, which have separate reasons."""
    pods = session.table.rows.get(PODS)
    return [r for r in session.placement.view(task).rows if r != pods and not _is_volume_row(session, r)]


def _is_volume_row(session: Session, row: int) -> bool:
    """Whether a row counts the volumes of a driver that a node attaches."""
    return list(session.table.rows)[row].startswith(ATTACHABLE_PREFIX)


def _most_frequent(f: Filter, codes: NDArray[np.generic]) -> str:
    text: str = f.reasons[int(np.bincount(codes).argmax()) - 1].text
    return text


def _cause(session: Session, task: Task, step: FilterStep, rejections: NDArray[np.int64], among: Bools | None) -> Cause:
    fields: dict[str, Value] = {
        "rejected": int(step.rejected.sum()),
        "nodes": len(session.table),
        "only": int((step.rejected & (rejections == 1)).sum()),
    }
    wanted = step.reason.fields
    if "selector" in wanted:
        fields["selector"] = selector_text(task)
    if "taint" in wanted:
        fields["taint"] = untolerated(session, task, step.rejected)
    if "job" in wanted:
        fields["job"] = reserved_for(session)
    if "plugin" in wanted:
        fields["plugin"] = step.plugin
    if step.reason is table.POD_AFFINITY:
        fields["problem"] = affinity_text(session, task)
    elif step.reason is table.TOPOLOGY_SPREAD:
        fields["problem"] = spread_text(session, task)
    elif "problem" in wanted:
        fields["problem"] = step.problem
    if step.rank == _TOO_SMALL:
        fields |= _largest(session, task, step.rejected)
    elif step.rank == _RESOURCES:
        fields |= nearest_miss(session, task, among if among is not None else step.rejected)
    return Cause(step.reason.code, fields)


def _largest(session: Session, task: Task, small: Bools) -> dict[str, Value]:
    """The resource of which even empty nodes have too little, and the largest amount that one of these nodes has."""
    view = session.placement.view(task)
    allocatable = session.numbers.allocatable[:, small]
    names = list(session.table.rows)
    short = [(int((view.vector[r] - allocatable[r] >= EPS).sum()), r) for r in _rows(session, task)]
    row = max(short, key=lambda s: (s[0], -s[1]))[1]
    return {
        "resource": names[row],
        "requested": float(view.vector[row]),
        "largest": float(allocatable[row].max(initial=0.0)),
    }


def nearest_miss(session: Session, task: Task, among: Bools) -> dict[str, Value]:
    """The node that lacks the smallest part of the request, and the resource of which it lacks the most."""
    view = session.placement.view(task)
    n = session.numbers
    rows = _rows(session, task)
    need = view.vector[rows, None]
    soon = n.idle[rows] + n.releasing[rows] - n.pipelined[rows]
    missing = np.where(need - soon >= EPS, need - soon, 0.0)
    part = (missing / np.maximum(need, 1.0)).max(axis=0, initial=0.0)
    candidates = np.flatnonzero(among & (part > 0))
    if not len(candidates):
        return {"resource": CPU, "requested": 0.0, "node": "-", "free": 0.0, "missing": 0.0}
    equal = candidates[part[candidates] == part[candidates].min()]
    node = min(equal.tolist(), key=session.table.names.__getitem__)
    at = int((missing[:, node] / np.maximum(need[:, 0], 1.0)).argmax())
    row = rows[at]
    return {
        "resource": list(session.table.rows)[row],
        "requested": float(view.vector[row]),
        "node": session.table.names[node],
        "free": max(float(soon[at, node]), 0.0),
        "missing": float(missing[at, node]),
    }
