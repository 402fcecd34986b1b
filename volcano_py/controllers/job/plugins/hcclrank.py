"""Job plugin hcclrank: sets each pod's rank in a collective of Ascend devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from volcano_py.api.batch import Job, Task
from volcano_py.api.names import HCCL_RANK_INDEX
from volcano_py.controllers.job.observed import find_task
from volcano_py.controllers.job.plugins.base import PodOnly
from volcano_py.controllers.job.plugins.flags import Flags


class HcclRank(PodOnly):
    name = "hcclrank"

    def __init__(self, arguments: Sequence[str]) -> None:
        flags = Flags(arguments, {"master": "master", "worker": "worker"})
        self.problem = flags.problem
        self._master, self._worker = flags.text("master"), flags.text("worker")

    def on_pod_create(self, pod: dict[str, Any], job: Job, task: Task, index: int) -> None:
        annotations = pod["metadata"].setdefault("annotations", {})
        if annotations.get(HCCL_RANK_INDEX):
            return
        rank = _rank_variable(pod)
        if not rank and task.name == self._master:
            rank = str(index)
        elif not rank and task.name == self._worker:
            master = find_task(job, self._master)
            rank = str((master.replicas if master else 0) + index)
        if rank:
            annotations[HCCL_RANK_INDEX] = rank


def _rank_variable(pod: dict[str, Any]) -> str:
    """The value of RANK, set by another plugin or the template."""
    for container in pod["spec"].get("containers") or ():
        for variable in container.get("env") or ():
            if variable.get("name") == "RANK" and variable.get("value"):
                return str(variable["value"])
    return ""
