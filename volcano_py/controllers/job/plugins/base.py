"""What a job plugin is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from volcano_py.api.batch import Job, Task
from volcano_py.controllers.instructions import Instruction


class JobPlugin(Protocol):
    """Made from its arguments for each look at a job; the hooks have no memory."""

    name: str

    def on_pod_create(self, pod: dict[str, Any], job: Job, task: Task, index: int) -> None:
        """Change the manifest of a pod that is about to be made."""

    def on_job_add(self, job: Job) -> list[Instruction]:
        """What must exist before the pods of the job."""

    def on_job_update(self, job: Job) -> list[Instruction]:
        """What has to follow the job while it runs."""

    def on_job_delete(self, job: Job) -> list[Instruction]:
        """What goes when all pods of the job are ended."""


class PodOnly:
    """Base of plugins that make nothing beside the pods."""

    problem = ""

    def __init__(self, arguments: Sequence[str]) -> None:
        """No arguments."""

    def on_job_add(self, job: Job) -> list[Instruction]:
        return []

    def on_job_update(self, job: Job) -> list[Instruction]:
        return []

    def on_job_delete(self, job: Job) -> list[Instruction]:
        return []
