"""The creations of a Job's missing pods. Each manifest is made when it is sent.

All manifests of a large Job at once could need more memory than the process has: 150,000 pods with a template of 1 MiB.
Volcano: createJobPod.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

from volcano_py.api.batch import Job, Task
from volcano_py.api.kinds import POD
from volcano_py.controllers.instructions import Create
from volcano_py.controllers.job import plugins
from volcano_py.controllers.job.pods import build_pod


class PodCreates(Sequence[Create]):
    """`missing`: the tasks with the indexes of their pods. Raises Unready, also later, if a plugin fails."""

    def __init__(self, job: Job, missing: Sequence[tuple[Task, int]], *, forwarding: bool) -> None:
        self._job = job
        self._missing = missing
        self._forwarding = forwarding
        for number, (task, _) in enumerate(missing):
            if number == 0 or task is not missing[number - 1][0]:
                self[number]  # a plugin that fails for a task fails before anything is written

    def __len__(self) -> int:
        return len(self._missing)

    @overload
    def __getitem__(self, number: int) -> Create: ...

    @overload
    def __getitem__(self, number: slice) -> Sequence[Create]: ...

    def __getitem__(self, number: int | slice) -> Create | Sequence[Create]:
        if isinstance(number, slice):
            return [self._made(*one) for one in self._missing[number]]
        return self._made(*self._missing[number])

    def _made(self, task: Task, index: int) -> Create:
        manifest = build_pod(self._job, task, index, forwarding=self._forwarding)
        plugins.on_pod_create(manifest, self._job, task, index)
        return Create(POD, manifest, "FailedCreate")
