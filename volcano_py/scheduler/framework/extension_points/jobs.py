"""Extension points about whole jobs: valid, ready, pipelined, starving, enqueueable. Volcano: JobReady and others."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from volcano_py.scheduler.framework.callbacks import Callbacks, Fault, Vote
from volcano_py.scheduler.framework.jobs.session_job import SessionJob
from volcano_py.scheduler.framework.jobs.sub_job import SubJob

Missing = Callable[[SessionJob, str], int]
"""(job, role) → number of tasks."""


class Invalid(NamedTuple):
    """Why a job cannot be scheduled at all."""

    reason: str
    message: str


class JobStates:
    """What plugins decide about a job as a whole."""

    def __init__(self, callbacks: Callbacks) -> None:
        self.callbacks = callbacks
        self._missing: dict[str, Missing] = {}

    def add_job_valid(self, fn: Callable[[SessionJob], Invalid | None]) -> None:
        """Reject a job before any of its tasks is considered; None: the job is valid.

        Called: once per job by every action that places or evicts.
        Combination: the first rejection.
        Flag: none.
        On error: the job is invalid with reason PluginError.
        """
        self.callbacks.add("job_valid", fn)

    def job_valid(self, job: SessionJob) -> Invalid | None:
        """Why the job cannot be scheduled; None: it can."""
        plugin, answer = self.callbacks.first("job_valid", job)
        if isinstance(answer, Fault):
            return Invalid("PluginError", f"plugin {plugin} failed: {answer.error.partition(': ')[2]}")
        invalid: Invalid | None = answer
        return invalid

    def add_job_ready(self, fn: Callable[[SessionJob], bool], *, missing: Missing | None = None) -> None:
        """Whether enough tasks of a job have a node, so that they may be bound.

        `missing` is a hint that makes gangs faster: how many further tasks of a role must at least be placed until
        `fn` can return true. That many are placed at once.

        Called: after each task, or run of tasks, that is placed.
        Combination: all plugins agree.
        Flag: enableJobReady.
        On error: not ready.
        """
        self.callbacks.add("job_ready", fn)
        if missing is not None:
            self._missing[self.callbacks.plugin] = missing

    def job_ready(self, job: SessionJob) -> bool:
        """Whether the job's placed tasks may be bound."""
        return self.callbacks.all("job_ready", job)

    def missing(self, job: SessionJob, role: str) -> int:
        """How many tasks of a role, at least, the job lacks until it is ready; 1: check after each task."""
        least = 1
        for plugin, _, _ in self.callbacks.enabled("job_ready"):
            if plugin in self._missing:
                least = max(least, self._missing[plugin](job, role))
        return least

    def add_job_pipelined(self, fn: Callable[[SessionJob], Vote]) -> None:
        """Whether enough tasks have a node or capacity that is being released, so that the job keeps them this cycle.

        Called: when a job is not ready after its tasks were tried, and after evictions for it.
        Combination: a REJECT is final, a PERMIT decides at the end of its tier, all abstaining means yes.
        Flag: enableJobPipelined.
        On error: not pipelined.
        """
        self.callbacks.add("job_pipelined", fn)

    def job_pipelined(self, job: SessionJob) -> bool:
        """Whether the job keeps the capacity that it waits for."""
        return self.callbacks.vote("job_pipelined", job)

    def add_sub_job_ready(self, fn: Callable[[SessionJob, SubJob], bool]) -> None:
        """As add_job_ready, for one sub-job; only for jobs with subGroupPolicy.

        Called: after each task of the sub-job that is placed.
        Combination: all plugins agree.
        Flag: enabledSubJobReady.
        On error: not ready.
        """
        self.callbacks.add("sub_job_ready", fn)

    def sub_job_ready(self, job: SessionJob, sub: SubJob) -> bool:
        """Whether the sub-job's placed tasks may be bound; without policies the job decides."""
        return self.callbacks.all("sub_job_ready", job, sub) if job.has_policies else self.job_ready(job)

    def add_sub_job_pipelined(self, fn: Callable[[SessionJob, SubJob], Vote]) -> None:
        """As add_job_pipelined, for one sub-job; only for jobs with subGroupPolicy.

        Called: when a sub-job is not ready after its tasks were tried.
        Combination: a REJECT is final, a PERMIT decides at the end of its tier, all abstaining means yes.
        Flag: enabledSubJobPipelined.
        On error: not pipelined.
        """
        self.callbacks.add("sub_job_pipelined", fn)

    def sub_job_pipelined(self, job: SessionJob, sub: SubJob) -> bool:
        """Whether the sub-job keeps the capacity that it waits for; without policies the job decides."""
        return self.callbacks.vote("sub_job_pipelined", job, sub) if job.has_policies else self.job_pipelined(job)

    def add_job_starving(self, fn: Callable[[SessionJob], bool]) -> None:
        """Whether a job lacks tasks and pods may be evicted for it.

        Called: by preempt, reclaim and their gang variants before and during the search for victims.
        Combination: all plugins of the first tier that has one agree; without any the job does not starve.
        Flag: enableJobStarving.
        On error: the job does not starve.
        """
        self.callbacks.add("job_starving", fn)

    def job_starving(self, job: SessionJob) -> bool:
        """Whether pods may be evicted for the job."""
        return not job.model.evicts_nothing and self.callbacks.first_tier("job_starving", job)

    def add_job_enqueueable(self, fn: Callable[[SessionJob], Vote]) -> None:
        """Whether a Pending PodGroup may become Inqueue, so that its pods are created.

        Called: by enqueue, for each pending job that sets minResources.
        Combination: a REJECT is final, a PERMIT decides at the end of its tier, all abstaining means yes.
        Flag: enableJobEnqueued.
        On error: the job stays Pending.
        """
        self.callbacks.add("job_enqueueable", fn)

    def job_enqueueable(self, job: SessionJob) -> bool:
        """Whether the job's PodGroup may become Inqueue."""
        return self.callbacks.vote("job_enqueueable", job)

    def add_job_enqueued(self, fn: Callable[[SessionJob], None]) -> None:
        """Count a job that was admitted.

        Called: by enqueue, when a PodGroup becomes Inqueue.
        Combination: all plugins are called.
        Flag: enableJobEnqueued.
        On error: the other plugins are called nevertheless.
        """
        self.callbacks.add("job_enqueued", fn)

    def job_enqueued(self, job: SessionJob) -> None:
        """Notify the plugins that the job's PodGroup has become Inqueue."""
        self.callbacks.each("job_enqueued", job)
