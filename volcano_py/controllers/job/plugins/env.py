"""Job plugin env: tells each container the index of its pod."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from volcano_py.api.batch import Job, Task
from volcano_py.controllers.instructions import Instruction
from volcano_py.controllers.job.plugins.hosts import add_env, all_containers

VARIABLES = ("VK_TASK_INDEX", "VC_TASK_INDEX")


class Env:
    name = "env"

    def __init__(self, arguments: Sequence[str]) -> None:
        """No arguments."""

    def on_pod_create(self, pod: dict[str, Any], job: Job, task: Task, index: int) -> None:
        for container in all_containers(pod):
            add_env(container, *({"name": variable, "value": str(index)} for variable in VARIABLES))

    def on_job_add(self, job: Job) -> list[Instruction]:
        return []

    def on_job_update(self, job: Job) -> list[Instruction]:
        return []

    def on_job_delete(self, job: Job) -> list[Instruction]:
        return []
