"""Job plugin ray: starts a Ray cluster, one head and its workers, and a Service for the head."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from volcano_py.api import names
from volcano_py.api.batch import Job, Task
from volcano_py.api.kinds import SERVICE
from volcano_py.controllers.instructions import Delete, Ensure, Instruction
from volcano_py.controllers.job.observed import Unready, find_task
from volcano_py.controllers.job.plugins.flags import Flags
from volcano_py.controllers.job.plugins.hosts import add_port, hosts
from volcano_py.controllers.job.pods import owner_reference

BLAME = "PluginError"


class Ray:
    name = "ray"

    def __init__(self, arguments: Sequence[str]) -> None:
        flags = Flags(
            arguments,
            {
                "head": "head",
                "headContainer": "head",
                "worker": "worker",
                "workerContainer": "worker",
                "port": 6379,
                "dashboardPort": 8265,
                "clientPort": 10001,
            },
        )
        self.problem = flags.problem
        self._head, self._head_container = flags.text("head"), flags.text("headContainer")
        self._worker, self._worker_container = flags.text("worker"), flags.text("workerContainer")
        self._ports = {
            "gcs": flags.number("port"),
            "dashboard": flags.number("dashboardPort"),
            "client-server": flags.number("clientPort"),
        }

    def on_pod_create(self, pod: dict[str, Any], job: Job, task: Task, index: int) -> None:
        head = self._head_task(job)
        port = self._ports["gcs"]
        for container in pod["spec"].get("containers") or ():
            if task.name == self._head and container.get("name") == self._head_container:
                for name, number in self._ports.items():
                    add_port(container, name, number)
                command = (
                    f"ray start --head --block --dashboard-host=0.0.0.0 --port={port} "
                    f"--dashboard-port={self._ports['dashboard']} "
                    f"--ray-client-server-port={self._ports['client-server']}"
                )
                container["command"] = ["sh", "-c", command]
            elif task.name == self._worker and container.get("name") == self._worker_container:
                address = hosts(job, head)[0]
                container["command"] = ["sh", "-c", f"ray start --block --address={address}:{port}"]

    def on_job_add(self, job: Job) -> list[Instruction]:
        self._head_task(job)
        service = {
            "apiVersion": SERVICE.api_version,
            "kind": SERVICE.kind,
            "metadata": {
                "name": _service_name(job),
                "namespace": job.metadata.namespace,
                "ownerReferences": [owner_reference(job)],
            },
            "spec": {
                "selector": {
                    names.JOB_NAME: job.metadata.name,
                    names.JOB_NAMESPACE: job.metadata.namespace,
                    names.TASK_SPEC: self._head,
                },
                "ports": [
                    {"name": name, "port": number, "protocol": "TCP", "targetPort": name}
                    for name, number in self._ports.items()
                ],
            },
        }
        return [Ensure(SERVICE, service, blame=BLAME)]

    def on_job_update(self, job: Job) -> list[Instruction]:
        return []

    def on_job_delete(self, job: Job) -> list[Instruction]:
        return [Delete(SERVICE, job.metadata.namespace, _service_name(job), blame=BLAME)]

    def _head_task(self, job: Job) -> Task:
        head = find_task(job, self._head)
        if head is None or not head.replicas:
            raise Unready(BLAME, f"job plugin ray: head task {self._head!r} does not exist; set --head to a task")
        return head


def _service_name(job: Job) -> str:
    return f"{job.metadata.name}-head-svc"
