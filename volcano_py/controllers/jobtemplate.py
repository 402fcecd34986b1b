"""Lists the Jobs that were created from a JobTemplate in its status. Volcano: jobtemplate controller."""

from __future__ import annotations

from collections.abc import Iterable

from volcano_py.api import names
from volcano_py.api.batch import Job
from volcano_py.api.flow import JobTemplate, JobTemplateStatus
from volcano_py.api.kinds import JOB, JOBTEMPLATE
from volcano_py.controllers.executor import status_write
from volcano_py.controllers.instructions import Instruction
from volcano_py.controllers.mirror import Mirror
from volcano_py.controllers.runner import Cluster, jobs_of_template
from volcano_py.kube.errors import Conflict
from volcano_py.kube.workqueue import WorkQueue


def template_of(job: Job) -> tuple[str, str] | None:
    """Namespace and name of the template that a Job was created from: a namespace has no dots, a name may."""
    namespace, dot, name = (job.metadata.labels or {}).get(names.CREATED_BY_JOB_TEMPLATE, "").partition(".")
    return (namespace, name) if dot and namespace and name else None


def reconcile(template: JobTemplate, jobs: Iterable[Job]) -> list[Instruction]:
    """Write the names of the Jobs, also if there are none."""
    found = sorted(job.metadata.name for job in jobs)
    if found == (template.status.job_depends_on_list or []):
        return []
    return [status_write(JOBTEMPLATE, template, JobTemplateStatus(job_depends_on_list=found or None))]


class JobTemplateController:
    name = "jobtemplate-controller"
    workers = 1

    def __init__(self, cluster: Cluster) -> None:
        self.queue: WorkQueue[str] = WorkQueue()
        self._executor = cluster.executor
        self._templates: Mirror[JobTemplate] = cluster.mirror(JOBTEMPLATE)
        self._jobs: Mirror[Job] = cluster.mirror(JOB)
        self._templates.on(add=lambda template: self.queue.add(template.key))
        self._jobs.on(add=self._job_came_or_went, delete=self._job_came_or_went)

    def _job_came_or_went(self, job: Job) -> None:
        if (made_from := template_of(job)) is not None:
            self.queue.add("/".join(made_from))

    async def process(self, key: str) -> None:
        template = self._templates.get(key)
        if template is not None:
            namespace, _, name = key.partition("/")
            instructions = reconcile(template, self._jobs.by_index(jobs_of_template(namespace, name)))
            try:
                await self._executor.carry_out(instructions, template)
            except Conflict:
                self.queue.add_after_conflict(key)
                return
        self.queue.forget(key)
