"""Job plugin env: sets the index of the pod in each container's environment."""

from __future__ import annotations

from typing import Any

from volcano_py.api.batch import Job, Task
from volcano_py.controllers.job.plugins.base import PodOnly
from volcano_py.controllers.job.plugins.hosts import add_env, all_containers

VARIABLES = ("VK_TASK_INDEX", "VC_TASK_INDEX")


class Env(PodOnly):
    name = "env"

    def on_pod_create(self, pod: dict[str, Any], job: Job, task: Task, index: int) -> None:
        # users read the index as the suffix of the pod's name
        *front, last = pod["metadata"]["name"].split("-")
        value = last if len(front) >= 2 else ""
        for container in all_containers(pod):
            add_env(container, *({"name": variable, "value": value} for variable in VARIABLES))
