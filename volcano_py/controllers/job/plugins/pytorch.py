"""Job plugin pytorch: sets the master's address, the number of containers and the rank in each container."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from volcano_py.api.batch import Job, Task
from volcano_py.controllers.job.observed import find_task
from volcano_py.controllers.job.plugins.base import PodOnly
from volcano_py.controllers.job.plugins.flags import Flags
from volcano_py.controllers.job.plugins.hosts import add_env, add_port, addresses

WAIT_CONTAINER = "wait-for-master"
_WAIT = """\
end=$(( $(date +%s) + {timeout} ))
until nc -z -w 2 {host} {port} 2>/dev/null || (exec 3<>/dev/tcp/{host}/{port}) 2>/dev/null; do
  if [ "$(date +%s)" -ge "$end" ]; then
    echo "{host}:{port} did not respond within {timeout} seconds" >&2
    exit 1
  fi
  sleep 2
done
"""


class Pytorch(PodOnly):
    name = "pytorch"

    def __init__(self, arguments: Sequence[str]) -> None:
        flags = Flags(
            arguments,
            {
                "master": "master",
                "worker": "worker",
                "port": 23456,
                "wait-master-enabled": False,
                "wait-master-timeout": 300,
                "wait-master-image": "busybox:1.36.1",
            },
        )
        self.problem = flags.problem
        self._master, self._worker = flags.text("master"), flags.text("worker")
        self._port = flags.number("port")
        self._wait = flags.switch("wait-master-enabled")
        self._wait_timeout = flags.number("wait-master-timeout")
        self._wait_image = flags.text("wait-master-image")

    def on_pod_create(self, pod: dict[str, Any], job: Job, task: Task, index: int) -> None:
        master, worker = find_task(job, self._master), find_task(job, self._worker)
        if master is None:
            return
        found = addresses(job, master)
        address = ".".join(found[0]) if found else ""
        world = master.replicas + (worker.replicas if worker else 0)
        rank = {self._master: "0", self._worker: str(index + 1)}.get(task.name)
        variables = {"MASTER_ADDR": address, "MASTER_PORT": str(self._port), "WORLD_SIZE": str(world)}
        if rank is not None:
            variables["RANK"] = rank
        for container in pod["spec"].get("containers") or ():
            add_port(container, "pytorchjob-port", self._port)
            add_env(container, *({"name": key, "value": value} for key, value in variables.items()))
        if self._wait and task.name == self._worker:
            self._wait_for_master(pod["spec"], address)

    def _wait_for_master(self, spec: dict[str, Any], address: str) -> None:
        init = spec.setdefault("initContainers", [])
        if any(container.get("name") == WAIT_CONTAINER for container in init):
            return
        script = _WAIT.format(host=address, port=self._port, timeout=self._wait_timeout)
        init.append({"name": WAIT_CONTAINER, "image": self._wait_image, "command": ["sh", "-c", script]})
