"""Admission problems of existing objects, for clusters without webhooks. Volcano: its webhooks only.

Controllers report the problems on the object and do not act on it; they validate it again when it or a queue changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from volcano_py.api.batch import Job
from volcano_py.api.codec import to_manifest
from volcano_py.api.scheduling import Queue
from volcano_py.api.topology import HyperNode
from volcano_py.controllers.mirror import Mirror
from volcano_py.webhooks.hypernodes import validate_hypernode
from volcano_py.webhooks.job_defaults import defaulted_job
from volcano_py.webhooks.jobs import validate_job_create
from volcano_py.webhooks.lookup import Manifest, Queues
from volcano_py.webhooks.queues import validate_queue


class MirroredQueues(Queues):
    """The queues of the cluster, for the admission rules."""

    def __init__(self, mirror: Mirror[Queue]) -> None:
        self._mirror = mirror

    def get(self, name: str) -> Manifest | None:
        found = self._mirror.get(name)
        return to_manifest(found) if found is not None else None

    def children(self, name: str) -> Sequence[Manifest]:
        return [to_manifest(queue) for queue in self._mirror.by_index(name)]

    def all(self) -> Iterable[Manifest]:
        return map(to_manifest, self._mirror.all())


def problems_of_job(job: Job, queues: Queues) -> list[str]:
    """Problems of a new Job with its defaults set."""
    return _shortened(validate_job_create(defaulted_job(to_manifest(job)), queues))


def problems_of_queue(queue: Queue, queues: Queues) -> list[str]:
    """Problems of a queue, considering the other queues."""
    manifest = {key: value for key, value in to_manifest(queue).items() if key != "status"}  # not the user's
    return _shortened(validate_queue(manifest, queues))


def problems_of_hypernode(hypernode: HyperNode) -> list[str]:
    """Problems of a HyperNode."""
    return _shortened(validate_hypernode(to_manifest(hypernode)))


def _shortened(problems: Iterable[str]) -> list[str]:
    """The problems without the object's name as prefix: the report is on the object."""
    return [problem.partition(": ")[2] for problem in problems]
