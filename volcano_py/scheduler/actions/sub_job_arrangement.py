"""Arrangements of a gang with sub-jobs: a network domain for each of them, and nodes for all of their members together
(deviation what-fits-starts). Not in Volcano, which places one sub-job after the other.

Domains are combined with the largest sub-job first; combinations whose sum of requests exceeds what a domain has free
are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.actions.arrangement import Lacking, Parts, Placed, arranged, lacking
from volcano_py.scheduler.actions.worksheet import Worksheet
from volcano_py.scheduler.framework.extension_points.hyper_nodes import ALLOCATE
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.framework.session_job import SessionJob
from volcano_py.scheduler.framework.sub_job import SubJob
from volcano_py.scheduler.framework.topology import ROOT
from volcano_py.scheduler.model.queue import Queue
from volcano_py.scheduler.model.resource import EPS
from volcano_py.scheduler.model.task import Task

Floats = NDArray[np.float64]
MOST_COMBINATIONS = 200
"""Combinations of domains that are tried for one gang in one HyperNode."""


class Part(NamedTuple):
    """A sub-job that the gang needs: its pending tasks, how many of them it lacks, the least amounts that these
    request, and the HyperNodes in which it can be."""

    sub: SubJob
    tasks: list[Task]
    members: int
    least: Floats
    domains: list[str]


def arranged_sub_jobs(
    session: Session, queue: Queue, job: SessionJob, sheet: Worksheet, hyper_node: str
) -> tuple[Placed, dict[str, str]] | None:
    """Nodes for the tasks that a job lacks below a HyperNode, and the HyperNode of each sub-job, by UID; the session is
    unchanged. None: none were found."""
    parts = _parts(session, job, sheet, hyper_node)
    if len(parts) < 2:
        return None
    tasks = [task for part in parts for task in part.tasks]
    members = {part.sub.uid: part.members for part in parts}
    need = Lacking(sum(members.values()), members)
    of = {task.slot: part.sub.uid for part in parts for task in part.tasks}
    for count, places in enumerate(_combinations(session, parts, [])):
        if count == MOST_COMBINATIONS:
            break
        outside = {uid: None if at == ROOT else ~session.topology.mask(at) for uid, at in places.items()}
        found = arranged(session, queue, tasks, need, parts=Parts(of, outside))
        if found is not None:
            return found, places
    return None


def _parts(session: Session, job: SessionJob, sheet: Worksheet, hyper_node: str) -> list[Part]:
    """The sub-jobs that the job requires, largest first; none if one of them has no domain or too few tasks."""
    found = []
    for sub in sheet.order(session, job):
        tasks = [t for t in sheet.tasks[sub.uid] if not t.sched_gated]
        need = lacking(session, job, sub)
        if need.members <= 0 or sub.uid not in sheet.required:
            continue
        gradients = session.sub_job_gradients(job, sub, hyper_node, ALLOCATE)
        domains = list(dict.fromkeys(name for group in gradients for name in sorted(group)))
        if not domains or len(tasks) < need.members:
            return []
        requests = np.sort([task.spec_class.vector(session.table) for task in tasks], axis=0)
        found.append(Part(sub, tasks, need.members, requests[: need.members].sum(axis=0), domains))
    free = np.maximum(_free(session).sum(axis=1), EPS)
    return sorted(found, key=lambda p: -float((p.least / free).max(initial=0.0)))


def _free(session: Session) -> Floats:
    numbers = session.numbers
    free: Floats = np.maximum(numbers.idle + numbers.releasing - numbers.pipelined, 0.0)
    return free


def _combinations(session: Session, parts: list[Part], chosen: list[str]) -> Iterator[dict[str, str]]:
    """A domain for each part, where what all parts of a domain request is free in it."""
    if len(chosen) == len(parts):
        yield {part.sub.uid: at for part, at in zip(parts, chosen, strict=True)}
        return
    for at in parts[len(chosen)].domains:
        together = [*chosen, at]
        wanted = sum(part.least for part, name in zip(parts, together, strict=False) if name == at)
        inside = _free(session)[:, session.topology.columns(at)].sum(axis=1)
        if (wanted <= inside + EPS).all():
            yield from _combinations(session, parts, together)
