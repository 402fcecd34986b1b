"""Runs the JobFlow reconciler."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from volcano_py.api.batch import Job
from volcano_py.api.codec import to_manifest
from volcano_py.api.core import Pod
from volcano_py.api.flow import DELETE, SUCCEED, JobFlow, JobTemplate
from volcano_py.api.kinds import JOB, JOBFLOW, JOBTEMPLATE, POD
from volcano_py.controllers import metrics
from volcano_py.controllers.failures import from_outside
from volcano_py.controllers.instructions import Again, Emit
from volcano_py.controllers.jobflow import prober
from volcano_py.controllers.jobflow.members import entries, job_name
from volcano_py.controllers.jobflow.reconcile import Observed, questions, reconcile
from volcano_py.controllers.mirror import Mirror
from volcano_py.controllers.runner import Cluster, jobs_of_flow
from volcano_py.kube.errors import Conflict, KubeError
from volcano_py.kube.workqueue import WorkQueue
from volcano_py.webhooks.jobflows import validate_jobflow

log = logging.getLogger(__name__)

DENIED_SECONDS = 60.0
"""Interval of retries of a JobFlow that is denied repeatedly: a missing object may be created."""


class JobFlowController:
    name = "jobflow-controller"
    workers = 5
    """A pod that does not respond to a probe blocks a worker for a second."""

    def __init__(self, cluster: Cluster, *, max_requeue: int = 15, clock: Callable[[], float] = time.time) -> None:
        """After `max_requeue` consecutive denied attempts a JobFlow is retried less often; negative: always at once."""
        self.queue: WorkQueue[str] = WorkQueue()
        self._max_requeue = max_requeue
        self._clock = clock
        self._executor = cluster.executor
        self._flows: Mirror[JobFlow] = cluster.mirror(JOBFLOW)
        self._templates: Mirror[JobTemplate] = cluster.mirror(JOBTEMPLATE)
        self._jobs: Mirror[Job] = cluster.mirror(JOB)
        self._pods: Mirror[Pod] = cluster.mirror(POD)
        self._flows.on(add=lambda flow: self.queue.add(flow.key), update=self._flow_updated)
        self._templates.on(add=self._template_changed, update=self._template_updated)
        self._jobs.on(add=self._job_changed, update=lambda old, new: self._job_changed(new), delete=self._job_changed)

    async def process(self, key: str) -> None:
        flow = self._flows.get(key)
        if flow is None:
            self.queue.forget(key)
            return
        seen = self._observe(flow)
        seen.answers = await prober.ask(questions(seen))
        instructions = reconcile(seen)
        for problem in validate_jobflow(to_manifest(flow)):  # for clusters without webhooks
            self._executor.record(flow, Emit("Warning", "InvalidJobFlow", problem, once=True))
        try:
            await self._executor.carry_out(instructions, flow)
        except Conflict:
            self.queue.add_after_conflict(key)
            return
        except KubeError as error:
            self._failed(flow, error)
            return
        finally:
            self._measure(flow)
        self.queue.forget(key)
        for instruction in instructions:
            if isinstance(instruction, Again):
                self.queue.add_after(key, instruction.seconds)

    def _failed(self, flow: JobFlow, error: KubeError) -> None:
        if not from_outside(error) and 0 <= self._max_requeue <= self.queue.retries(flow.key):
            log.warning("jobflow %s: %s; retrying at longer intervals", flow.key, error)
            self._executor.record(flow, Emit("Warning", "SyncJobFlow", f"SyncJobFlow failed: {error}"))
            self.queue.add_after(flow.key, DENIED_SECONDS)
            return
        raise error

    def _observe(self, flow: JobFlow) -> Observed:
        namespace = flow.metadata.namespace
        jobs = {job.metadata.name: job for job in self._jobs.by_index(jobs_of_flow(namespace, flow.metadata.name))}
        templates = {}
        for name in entries(flow):
            if template := self._templates.get(f"{namespace}/{name}"):
                templates[name] = template
            expected = job_name(flow.metadata.name, name)
            if expected not in jobs and (other := self._jobs.get(f"{namespace}/{expected}")):
                jobs[expected] = other
        pods = {name: self._pods.by_index(job.metadata.uid) for name, job in jobs.items()}
        return Observed(flow, self._clock(), templates, jobs, pods)

    def _flow_updated(self, old: JobFlow, new: JobFlow) -> None:
        cleaning = new.status.state.phase == SUCCEED and new.spec.job_retain_policy == DELETE
        if cleaning or old.spec != new.spec:
            self.queue.add(new.key)

    def _template_updated(self, old: JobTemplate, new: JobTemplate) -> None:
        if old.spec != new.spec:
            self._template_changed(new)

    def _template_changed(self, template: JobTemplate) -> None:
        """Enqueue the JobFlows that use the template: they may wait for it, or for a correction."""
        metadata = template.metadata
        for flow in self._flows.all():
            if flow.metadata.namespace == metadata.namespace and metadata.name in entries(flow):
                self.queue.add(flow.key)

    def _job_changed(self, job: Job) -> None:
        owner = job.metadata.controller
        if owner is not None and owner.kind == JOBFLOW.kind and owner.api_version == JOBFLOW.api_version:
            self.queue.add(f"{job.metadata.namespace}/{owner.name}")

    def _measure(self, before: JobFlow) -> None:
        after = self._flows.get(before.key)
        if after is not None and after.status.state.phase != before.status.state.phase:
            metrics.count_jobflow(before.metadata.namespace, after.status.state.phase)
