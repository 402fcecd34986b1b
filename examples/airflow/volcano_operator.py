"""An operator for Airflow: a task of a DAG is a job of Volcano.

    run = VolcanoJobOperator(task_id="train", manifest=job("train", train(rate=0.1)), timeout=3600)

The log of the pods is the log of the task; a killed task deletes its job.
"""

from typing import Any

from airflow.models import BaseOperator

from volcano_py.client import Client, JobFailed, NotFound


class VolcanoJobOperator(BaseOperator):
    """Submits a job and waits for it. The result is the name of the job."""

    def __init__(self, *, manifest: dict[str, Any], kubeconfig: str | None = None, timeout: float = 0, **options: Any):
        super().__init__(**options)
        self.manifest, self.kubeconfig, self.timeout = manifest, kubeconfig, timeout
        self.job: Any = None

    def execute(self, context: dict[str, Any]) -> str:
        with Client(self.kubeconfig) as client:
            self.job = client.submit(self.manifest)
            for line in client.logs(self.job, follow=True):
                self.log.info("%s", line)
            try:
                return client.wait(self.job, timeout=self.timeout or None, progress=False).name
            except JobFailed as error:
                self.log.error("%s", client.explain(self.job) if error.job else error)
                raise

    def on_kill(self) -> None:
        if self.job is not None:
            with Client(self.kubeconfig) as client:
                try:
                    client.delete(self.job)
                except NotFound:
                    self.log.info("%s is deleted already", self.job)
