"""Arrangements of a gang with sub-jobs: a network domain for each of them, and nodes for all of their members together
(deviation what-fits-starts). Not in Volcano, which places one sub-job after the other.

Domains are combined with the largest sub-job first; combinations whose sum of requests exceeds what a domain has free
are left out. Each domain that is tried counts as steps of the search (`arrangement.Effort`), so that no number of
sub-jobs and domains makes a cycle long.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.actions.placing.arrangement import Effort, Lacking, Parts, Placed, arranged, lacking
from volcano_py.scheduler.actions.placing.worksheet import Worksheet
from volcano_py.scheduler.framework.extension_points.hyper_nodes import ALLOCATE
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.jobs.sub_job import SubJob
from volcano_py.scheduler.framework.network.topology import ROOT
from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.jobs.task import Task
from volcano_py.scheduler.model.queue import Queue
from volcano_py.scheduler.model.resource import EPS

Floats = NDArray[np.float64]
MOST_COMBINATIONS = 200
"""Combinations of domains that are tried for one gang in one HyperNode."""
MOST_STEPS = 10_000
"""Steps of the choice of domains for one gang in one HyperNode."""
STEPS_OF_DOMAIN = 10
"""Steps that count for a domain that is tried for a sub-job: all resources are compared at once."""


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
    combinations = islice(_combinations(session, parts), MOST_COMBINATIONS)
    for places in combinations:
        outside = {uid: None if at == ROOT else ~session.topology.mask(at) for uid, at in places.items()}
        found = arranged(session, queue, tasks, need, parts=Parts(of, outside))
        if found is not None:
            return found, places
    return None


def _parts(session: Session, job: SessionJob, sheet: Worksheet, hyper_node: str) -> list[Part]:
    """The sub-jobs that the job requires; none if one of them has no domain or too few tasks."""
    found = []
    for sub in sheet.order(session, job):
        tasks = [t for t in sheet.tasks[sub.uid] if not t.sched_gated]
        need = lacking(session, job, sub)
        if need.members <= 0 or sub.uid not in sheet.required:
            continue
        gradients = session.network.sub_job_gradients(job, sub, hyper_node, ALLOCATE)
        domains = list(dict.fromkeys(name for group in gradients for name in sorted(group)))
        if not domains or len(tasks) < need.members:
            return []
        requests = np.sort([task.spec_class.vector(session.table) for task in tasks], axis=0)
        found.append(Part(sub, tasks, need.members, requests[: need.members].sum(axis=0), domains))
    return found


def _combinations(session: Session, parts: list[Part]) -> Iterator[dict[str, str]]:
    """A domain for each part, where what all parts of a domain request is free in it; until the steps are used up."""
    effort = session.shared(Effort, Effort)
    last = effort.left - MOST_STEPS
    numbers = session.numbers
    free: Floats = np.maximum(numbers.idle + numbers.releasing - numbers.pipelined, 0.0)
    left: dict[str, Floats] = {
        name: free[:, session.topology.columns(name)].sum(axis=1)
        for name in dict.fromkeys(name for part in parts for name in part.domains)
    }
    total = np.maximum(free.sum(axis=1), EPS)
    in_order = sorted(parts, key=lambda p: -float((p.least / total).max(initial=0.0)))

    def choose(places: dict[str, str]) -> Iterator[dict[str, str]]:
        if len(places) == len(in_order):
            yield places
            return
        part = in_order[len(places)]
        for at in part.domains:
            if effort.left <= max(last, 0):
                return
            effort.left -= STEPS_OF_DOMAIN
            if (part.least <= left[at] + EPS).all():
                left[at] -= part.least
                yield from choose({**places, part.sub.uid: at})
                left[at] += part.least

    return choose({})
