"""The interface of a job plugin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from volcano_py.api.batch import Job, Task
from volcano_py.controllers.instructions import Instruction


class JobPlugin(Protocol):
    """Constructed from its arguments for each sync of a Job; the hooks are stateless."""

    name: str

    def on_pod_create(self, pod: dict[str, Any], job: Job, task: Task, index: int) -> None:
        """Change the manifest of a pod before it is created."""

    def on_job_add(self, job: Job) -> list[Instruction]:
        """The objects that must exist before the pods of the Job."""

    def on_job_update(self, job: Job) -> list[Instruction]:
        """The objects to update while the Job runs."""

    def on_job_delete(self, job: Job) -> list[Instruction]:
        """The objects to delete after all pods of the Job have ended."""


class PodOnly:
    """Base class of plugins that only change pods."""

    problem = ""

    def __init__(self, arguments: Sequence[str]) -> None:
        """No arguments."""

    def on_job_add(self, job: Job) -> list[Instruction]:
        return []

    def on_job_update(self, job: Job) -> list[Instruction]:
        return []

    def on_job_delete(self, job: Job) -> list[Instruction]:
        return []
