"""Several faults at the same moment: by chance they meet in one of thousands of runs.

A situation is prepared at a step, and happens at the next bind, or at the next pod that a controller creates. In two of
them another pod requests what is free on the node of a bind: a model without this bind gives the same room away twice.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING

from tests.dst.cluster import CORE, MERGE, at_once
from tests.dst.faults import NOTHING, Fault, Kind
from tests.dst.manifests import Manifest
from tests.dst.network import Place
from tests.dst.processes import Process
from tests.dst.replicas import ControllerReplica, Replica, SchedulerReplica

if TYPE_CHECKING:
    from tests.dst.run import Run

LEASE = 15.0
"""Seconds after which a standby takes the Lease of a leader that is gone."""
SILENT = 40.0
"""Seconds in which a leader's watch of pods returns nothing."""


class Situations:
    """What happens at the next bind, and at the next pod of the controllers."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._at_bind: tuple[Kind, int] | None = None
        """The situation at the next bind, with its step."""
        self._at_creation: tuple[Kind, int] | None = None
        """The situation at the next pod that a controller creates, with its step."""
        self._failing = ""
        """The UID of a pod for which no bind is answered with success."""

    async def prepare(self, kind: Kind, number: int) -> None:
        """Make one happen soon, and create what it needs. It is counted when it happens."""
        run = self._run
        random = Random(f"{run.seed} {kind.name} {number}")
        run.note(f"prepared: {kind.name}")
        if kind.kind == "pod unseen":
            self._at_creation = kind, number
            await run.cluster.create_job(random, number * 1000)
            return
        self._at_bind = kind, number
        if kind.kind == "stale takeover":
            for i in range(3):
                await run.cluster.create_gang(random, number * 1000 + 900 + i)
        else:
            await run.cluster.create_pod(random, number * 1000)

    async def bind_sent(self, process: Process, place: Place, node: str) -> Fault:
        """What happens to a bind that a dispatcher sends."""
        run = self._run
        pod = run.server.objects("pods").get(f"{place.namespace}/{place.name}")
        if pod is None or not run.faults.active:
            return NOTHING
        if pod["metadata"]["uid"] == self._failing:
            return Fault("500 again", "answer", 500)
        leader = next((r for r in run.replicas if process in r.processes()), None)
        if self._at_bind is None or leader is None:
            return NOTHING
        (kind, number), self._at_bind = self._at_bind, None
        fault = await self._happens(kind, number, leader, pod, node)
        if fault is None:
            self._at_bind = self._at_bind or (kind, number)
            return NOTHING
        run.oracle.disturbed(run.loop.now)
        run.faults.did(kind, number, process.component)
        return fault

    async def _happens(self, kind: Kind, number: int, leader: Replica, pod: Manifest, node: str) -> Fault | None:
        """Make a situation happen at the bind of a pod; None: the next bind may suit it."""
        if kind.kind == "stale takeover":
            return self._take_over(kind, number, leader)
        if pod["spec"].get("priorityClassName") == "high" or not await self._run.cluster.create_competitor(pod, node):
            return None
        if kind.kind == "bind unanswered":
            await asyncio.sleep(0.3)  # the other pod is in the model
            self._hold(leader, SILENT)
            self._failing = pod["metadata"]["uid"]
            return Fault(kind.name, "late answer", 500)
        name = pod["metadata"]["name"]
        edited = {"metadata": {"labels": {"edited": name}}}
        await self._run.server.call("user", "PATCH", f"{CORE}/pods/{name}", edited, MERGE)
        return Fault(kind.name, "delay", seconds=1.0)

    def _take_over(self, kind: Kind, number: int, leader: Replica) -> Fault | None:
        """The leader ends in the midst of its binds, while the standby's watches of pods return nothing; None: there is
        no standby."""
        run = self._run
        random = Random(f"{run.seed} {kind.name} {number} end")
        standby = next((r for r in run.replicas if isinstance(r, SchedulerReplica) and r is not leader), None)
        if standby is None or standby.process is None:
            return None
        self._hold(standby, LEASE + 6.0 + kind.longest * random.random())
        for process in leader.processes():
            run.loop.call_later(0.01 * random.random(), process.kill)
        return Fault(kind.name)

    def _hold(self, replica: Replica, seconds: float) -> None:
        """The watches of pods of a scheduler return nothing for a while."""
        for stream in self._run.network.streams:
            if stream.process is replica.process and stream.place.plural == "pods":
                stream.hold(self._run.loop.now + seconds)

    def pod_created(self, name: str) -> None:
        """The controllers have created a pod: it is deleted before a watch of theirs returns it."""
        run = self._run
        if self._at_creation is None or not run.faults.active:
            return
        (kind, number), self._at_creation = self._at_creation, None
        run.faults.did(kind, number, "controllers")
        controllers = [r.process for r in run.replicas if isinstance(r, ControllerReplica)]
        for stream in run.network.streams:
            if stream.process in controllers and stream.place.plural == "pods":
                stream.expire(run.loop.now + 1.0)
        run.loop.create_task(self._delete(name))

    async def _delete(self, name: str) -> None:
        await asyncio.sleep(0.5)  # the controller has the answer to its request
        pod = self._run.server.objects("pods").get(f"default/{name}")
        if pod is not None:
            self._run.note(f"pod {name} is deleted before a watch returns it")
            await self._run.server.call("user", "DELETE", f"{CORE}/pods/{name}", at_once(pod["metadata"]["uid"]))
