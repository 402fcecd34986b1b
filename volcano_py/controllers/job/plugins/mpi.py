"""Job plugin mpi: sets the hosts of the workers in the master. The webhook adds ssh and svc to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from volcano_py.api.batch import Job, Task
from volcano_py.controllers.job.observed import find_task
from volcano_py.controllers.job.plugins.base import PodOnly
from volcano_py.controllers.job.plugins.flags import Flags
from volcano_py.controllers.job.plugins.hosts import add_env, add_port, all_containers, hosts


class Mpi(PodOnly):
    name = "mpi"

    def __init__(self, arguments: Sequence[str]) -> None:
        flags = Flags(arguments, {"master": "master", "worker": "worker", "port": 22})
        self.problem = flags.problem
        self._master, self._worker = flags.text("master"), flags.text("worker")
        self._port = flags.number("port")

    def on_pod_create(self, pod: dict[str, Any], job: Job, task: Task, index: int) -> None:
        workers = find_task(job, self._worker)
        is_master = task.name == self._master
        if is_master and workers is None:
            return
        for container in all_containers(pod):
            if is_master and workers is not None:
                add_env(container, {"name": "MPI_HOST", "value": ",".join(hosts(job, workers))})
            add_port(container, "mpijob-port", self._port)
