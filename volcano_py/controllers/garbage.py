"""Deletes finished Jobs after their TTL. Volcano: gc-controller (ttlSecondsAfterFinished)."""

from __future__ import annotations

import time
from collections.abc import Callable

from volcano_py.api.batch import Job
from volcano_py.api.kinds import JOB
from volcano_py.api.meta import parse_time
from volcano_py.controllers.instructions import Again, Delete, Instruction
from volcano_py.controllers.job.state import FINISHED
from volcano_py.controllers.mirror import Mirror
from volcano_py.controllers.runner import LONGEST_SLEEP, Cluster
from volcano_py.kube.errors import NotFound
from volcano_py.kube.workqueue import WorkQueue


def reconcile(job: Job, now: float) -> list[Instruction]:
    """Delete the Job if its TTL has expired, else reconcile it then. Raises ValueError without a finish time."""
    ttl = job.spec.ttl_seconds_after_finished
    if ttl is None or job.status.state.phase not in FINISHED or job.metadata.deletion_timestamp is not None:
        return []
    finished = job.status.state.last_transition_time
    if not finished:
        raise ValueError(f"unable to find the time when the Job {job.key} finished")
    left = parse_time(finished) + ttl - now
    if left > 0:
        return [Again(left)]
    return [Delete(JOB, job.metadata.namespace, job.metadata.name, job.metadata.uid, propagation="Foreground")]


class GarbageController:
    name = "gc-controller"

    def __init__(self, cluster: Cluster, *, workers: int = 1, clock: Callable[[], float] = time.time) -> None:
        self.queue: WorkQueue[str] = WorkQueue()
        self.workers = workers
        self._clock = clock
        self._cluster = cluster
        self._jobs: Mirror[Job] = cluster.mirror(JOB)
        self._jobs.on(add=self._seen, update=lambda old, new: self._seen(new))

    def _seen(self, job: Job) -> None:
        if job.spec.ttl_seconds_after_finished is not None and job.status.state.phase in FINISHED:
            self.queue.add(job.key)

    async def process(self, key: str) -> None:
        job = self._jobs.get(key)
        if job is not None and (instructions := reconcile(job, self._clock())):
            if isinstance(instructions[0], Delete):
                # The cache may be stale, and a deletion is final: read the Job.
                try:
                    job = await self._cluster.client.get(JOB, job.metadata.name, job.metadata.namespace, type=Job)
                except NotFound:
                    self.queue.forget(key)
                    return
                instructions = reconcile(job, self._clock())
            await self._cluster.executor.carry_out(instructions, job)
            for instruction in instructions:
                if isinstance(instruction, Again):
                    self.queue.add_after(key, min(LONGEST_SLEEP, instruction.seconds))
        self.queue.forget(key)
