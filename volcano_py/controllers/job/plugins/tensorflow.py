"""Job plugin tensorflow: sets TF_CONFIG, which describes the cluster, in each container."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from volcano_py.api.batch import Job, Task
from volcano_py.controllers.job.observed import find_task
from volcano_py.controllers.job.plugins.base import PodOnly
from volcano_py.controllers.job.plugins.flags import Flags
from volcano_py.controllers.job.plugins.hosts import add_env, hosts

ROLES = ("ps", "worker", "chief", "evaluator")


class Tensorflow(PodOnly):
    name = "tensorflow"

    def __init__(self, arguments: Sequence[str]) -> None:
        flags = Flags(arguments, {role: role for role in ROLES} | {"port": 2222})
        self.problem = flags.problem
        self._tasks = {role: flags.text(role) for role in ROLES}
        self._port = flags.number("port")

    def on_pod_create(self, pod: dict[str, Any], job: Job, task: Task, index: int) -> None:
        tasks = job.spec.tasks or []
        if len(tasks) == 1 and tasks[0].replicas == 1:
            return  # no peers
        cluster = {}
        role_of_pod = task.name
        for role, name in self._tasks.items():
            found = find_task(job, name)
            if found is not None and found.replicas:
                cluster[role] = [f"{host}:{self._port}" for host in hosts(job, found)]
            if name == task.name:
                role_of_pod = role
        config = {"cluster": cluster, "task": {"type": role_of_pod, "index": index}}
        text = json.dumps(config, separators=(",", ":"))
        for container in pod["spec"].get("containers") or ():
            add_env(container, {"name": "TF_CONFIG", "value": text})
