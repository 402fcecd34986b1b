"""The jobs of the demo: weighted queues, a job that fills the cluster, a gang that waits until it fits completely, and
other small and large jobs.

Names, sizes and times depend on a seed; the expected result (no partial gang, all completed) does not.
"""

from __future__ import annotations

from random import Random
from typing import Any

from msgspec import Struct

from volcano_py.api.kinds import JOB, QUEUE

Manifest = dict[str, Any]

_GANGS = ("mnist", "resnet", "llama", "whisper", "bert")
_FILLERS = ("nightly", "backup", "reindex", "etl")
_SMALL = ("hello", "lint", "report", "probe")
_BIG = ("pretrain", "sweep", "render", "simulate")
_QUEUES = (("research", "production"), ("blue", "green"), ("team-a", "team-b"))


class Step(Struct):
    """A job with its submission time and description."""

    at: float
    """Seconds after the start."""
    job: Manifest
    description: str

    @property
    def name(self) -> str:
        return str(self.job["metadata"]["name"])

    @property
    def members(self) -> int:
        return sum(t["replicas"] for t in self.job["spec"]["tasks"])


class Story(Struct):
    """The content of the demo."""

    nodes: int
    cpus: int
    """CPUs of each node."""
    queues: list[Manifest]
    steps: list[Step]


def story(seed: int) -> Story:
    """The story of a seed; `make demo` uses seed 0."""
    r = Random(seed)
    nodes = 4 if seed == 0 else r.randint(3, 6)
    cpus = 8 if seed == 0 else r.choice((6, 8, 12))
    light, heavy = _QUEUES[0] if seed == 0 else r.choice(_QUEUES)
    pick = (lambda names: names[0]) if seed == 0 else r.choice
    total = nodes * cpus
    # The first job leaves too little capacity for the gang, whose workers need half a node each.
    worker = cpus // 2
    workers = max(2, (total * 5 // 8) // worker)
    filler_pods = nodes * 2 - 1
    steps = [
        Step(
            0.0,
            job(pick(_SMALL), light, 1, {"main": (1, 1, 3)}),
            "a small job of one pod: starts at once",
        ),
        Step(
            0.5,
            job(pick(_FILLERS), light, filler_pods, {"batch": (filler_pods, worker, 9)}),
            f"fills the cluster: {filler_pods} pods of {worker} cpu; its queue borrows unused capacity of the other",
        ),
        Step(
            3.0,
            job(pick(_GANGS), heavy, workers + 1, {"ps": (1, 1, 5), "worker": (workers, worker, 5)}),
            f"a gang: parameter server and {workers} workers, all or nothing – it waits until every member fits",
        ),
        Step(
            5.0,
            job(pick(_BIG), heavy, total // 2, {"main": (total // 2, 1, 4)}),
            f"a big gang of {total // 2} pods of 1 cpu",
        ),
    ]
    return Story(nodes, cpus, [queue(light, 1), queue(heavy, 3)], steps)


def queue(name: str, weight: int) -> Manifest:
    return {
        "apiVersion": QUEUE.api_version,
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"weight": weight, "reclaimable": True},
    }


def job(name: str, queue_name: str, minimum: int, tasks: dict[str, tuple[int, int, int]]) -> Manifest:
    """A Job; tasks: name → (replicas, cpus, seconds it runs)."""
    return {
        "apiVersion": JOB.api_version,
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "minAvailable": minimum,
            "schedulerName": "volcano",
            "queue": queue_name,
            "tasks": [
                {
                    "name": task,
                    "replicas": replicas,
                    "template": {
                        "spec": {
                            "restartPolicy": "Never",
                            "containers": [
                                {
                                    "name": "main",
                                    "image": "busybox",
                                    "command": ["sleep", str(seconds)],
                                    "resources": {"requests": {"cpu": str(cpus), "memory": "64Mi"}},
                                }
                            ],
                        }
                    },
                }
                for task, (replicas, cpus, seconds) in tasks.items()
            ],
        },
    }
