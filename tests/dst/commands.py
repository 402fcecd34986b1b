"""What users do with Jobs in a third of the runs: Commands, as `vcctl job suspend` and `resume` create them, and other
numbers of replicas; and what must hold of that at the end."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.dst.oracle import active, owned_by, state_of
from tests.dst.parts import Call, Part
from tests.dst.server import ApiServer

Object = dict[str, Any]

JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
COMMANDS = "/apis/bus.volcano.sh/v1alpha1/namespaces/default/commands"
KIND, COMMAND_KIND = "jobs.batch.volcano.sh", "commands.bus.volcano.sh"
ACTIONS = ("AbortJob", "AbortJob", "ResumeJob", "ResumeJob", "RestartJob", "CompleteJob", "TerminateJob")
PASSING = ("Aborting", "Restarting", "Completing", "Terminating")
"""Phases that a Job leaves by itself."""
WITHOUT_PODS = ("Aborted", "Completed", "Terminated")
"""Phases in which no pod of a Job is alive."""


class Commands(Part):
    """The Commands of a run."""

    name = "commands"
    share = 0.33

    def __init__(self, server: ApiServer, seed: str, call: Call) -> None:
        super().__init__(server, seed, call)

    async def step(self, number: int) -> None:
        """A step of the users, in addition to the others."""
        random = Random(f"{self._seed} command {number}")
        jobs = self._server.objects(KIND)
        if not self.used or random.random() > 0.12 or not jobs:
            return
        key = random.choice(sorted(jobs))
        if random.random() < 0.25:
            await self._scale(random, jobs[key])
        else:
            await self._command(random.choice(ACTIONS), jobs[key], number)

    async def _command(self, action: str, job: Object, number: int) -> None:
        name, uid = job["metadata"]["name"], job["metadata"]["uid"]
        target = {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "name": name,
            "uid": uid,
            "controller": True,
        }
        body = {
            "apiVersion": "bus.volcano.sh/v1alpha1",
            "kind": "Command",
            "metadata": {"name": f"{name}-{number}", "namespace": "default", "ownerReferences": [target]},
            "action": action,
            "target": target,
        }
        await self._call("POST", COMMANDS, body, "user")

    async def _scale(self, random: Random, job: Object) -> None:
        tasks = [{**task, "replicas": random.randint(1, 3)} for task in job["spec"]["tasks"]]
        spec = {"tasks": tasks, "minAvailable": 1}
        await self._call("PATCH", f"{JOBS}/{job['metadata']['name']}", {"spec": spec}, "user")

    def left(self) -> list[str]:
        """What should have happened at the end, and has not."""
        found = [f"Command {name} was not executed" for name in self._server.objects(COMMAND_KIND)]
        for key, job in self._server.objects(KIND).items():
            phase = state_of(job)
            if job["metadata"].get("deletionTimestamp"):
                continue
            if phase in PASSING:
                found.append(f"Job {key} still is {phase}")
            alive = [
                pod["metadata"]["name"]
                for pod in self._server.objects("pods").values()
                if owned_by(pod, job["metadata"]["uid"]) and active(pod)
            ]
            if phase in WITHOUT_PODS and alive:
                found.append(f"Job {key} is {phase}, and has the pods {', '.join(sorted(alive))}")
        return found
