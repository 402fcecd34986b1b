"""Faults that need several things at the same moment: by chance they meet in one of thousands of runs.

Each is armed at a step, and happens at the next bind, or at the next pod that a controller creates. The room of a bound
pod is wanted when another pod of a high priority needs its place: a model without the bind gives it away twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import TYPE_CHECKING, Any

from tests.dst.cluster import CORE, MERGE, at_once
from tests.dst.faults import NOTHING, Fault, Kind
from tests.dst.network import Place, Stream
from tests.dst.processes import Process
from tests.dst.replicas import SchedulerReplica

if TYPE_CHECKING:
    from tests.dst.run import Run

LEASE = 15.0
"""Seconds after which a standby takes the Lease of a leader that is gone."""
AtBind = Callable[[Process, Place, str], Awaitable[Fault]]


class Situations:
    """What happens at the next bind, and at the next creation of a pod by the controllers."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._armed: tuple[Kind, int, AtBind] | None = None
        """The fault at the next bind, with its step."""
        self._failing = ""
        """The UID of a pod for whose bind every answer is 500."""
        self._unseen: tuple[Kind, int, float] | None = None
        """The fault at the next pod of the controllers, with its step, and when it is too late."""

    async def arm(self, kind: Kind, random: Random, number: int) -> None:
        """Prepare one, if the cluster has what it needs. It is counted when it happens."""
        run = self._run
        run.note(f"prepared: {kind.name}")
        match kind.kind:
            case "stale takeover":
                await self._stale_takeover(kind, random, number)
            case "bind unanswered" | "bind overtaken":
                self._armed = kind, number, self._unanswered if kind.kind == "bind unanswered" else self._overtaken
                await run.cluster.create_pod(random, number * 1000 + 1)
            case "pod unseen":
                until = run.loop.now + 20.0
                self._unseen = kind, number, until
                for stream in self._watches("controllers"):
                    stream.hold(until)
                await run.cluster.create_job(random, number * 1000)

    async def bind_sent(self, process: Process, place: Place, node: str) -> Fault:
        """A dispatcher sends a bind: what happens to it. Pods of a high priority are spared."""
        pod = self._run.server.objects("pods").get(f"{place.namespace}/{place.name}")
        if pod is not None and pod["metadata"]["uid"] == self._failing:
            return Fault("the API server fails", "answer", 500)
        if self._armed is None or pod is None or pod["spec"].get("priorityClassName") == "high":
            return NOTHING
        (kind, number, at_bind), self._armed = self._armed, None
        self._run.oracle.disturbed(self._run.loop.now)
        self._run.faults.did(kind, number, process.component)
        return await at_bind(process, place, node)

    def _watches(self, component: str) -> list[Stream]:
        """The watches of pods of a component."""
        streams = self._run.network.streams
        return [stream for stream in streams if stream.process.component == component and stream.place.plural == "pods"]

    # ---- at a bind -------------------------------------------------------------------------------------------

    async def _stale_takeover(self, kind: Kind, random: Random, number: int) -> None:
        """The watches of the standby's pods stand still, and the leader ends in the midst of its binds."""
        run = self._run
        schedulers = [r for r in run.replicas if isinstance(r, SchedulerReplica)]
        leader = next((r for r in schedulers if r.leading), None)
        standby = next((r.process for r in schedulers if not r.leading and r.process is not None), None)
        if leader is None or standby is None:
            return
        late = LEASE + 6.0 + kind.longest * random.random()

        async def take_over(*_: Any) -> Fault:
            self._hold(standby, run.loop.now + late)
            for process in leader.processes():
                run.loop.call_later(0.01 * random.random(), process.kill)
            return NOTHING

        self._armed = kind, number, take_over
        for i in range(3):
            await run.cluster.create_gang(random, number * 1000 + 900 + i)

    async def _unanswered(self, process: Process, place: Place, node: str) -> Fault:
        """A bind takes effect, all answers are 500, the leader's watch stands still, and the room is wanted."""
        run = self._run
        if not await self._room_wanted(place, node):
            return NOTHING
        await asyncio.sleep(0.3)  # the other pod is in the model
        for replica in run.replicas:
            if isinstance(replica, SchedulerReplica) and process in replica.processes():
                self._hold(replica.process, run.loop.now + 40.0)
        pod = run.server.objects("pods").get(f"{place.namespace}/{place.name}")
        self._failing = pod["metadata"]["uid"] if pod is not None else ""
        return Fault("the API server fails after the bind took effect", "late answer", 500)

    async def _overtaken(self, process: Process, place: Place, node: str) -> Fault:
        """A pod is edited while its bind is on the way, and the room is wanted."""
        if not await self._room_wanted(place, node):
            return NOTHING
        edited = {"metadata": {"labels": {"edited": place.name}}}
        await self._run.server.call("user", "PATCH", f"{CORE}/pods/{place.name}", edited, MERGE)
        return Fault("a pod is edited while its bind is on the way", "delay", seconds=1.0)

    async def _room_wanted(self, place: Place, node: str) -> bool:
        """Another pod needs all that is free on the node without this one."""
        return place.namespace == "default" and await self._run.cluster.create_rival(place.name, node)

    def _hold(self, process: Process | None, until: float) -> None:
        for stream in self._watches("scheduler"):
            if stream.process is process:
                stream.hold(until)

    # ---- at the creation of a pod ----------------------------------------------------------------------------

    def pod_created(self, name: str) -> None:
        """The controllers have created a pod: it is deleted before any of their watches returns it."""
        if self._unseen is None:
            return
        (kind, number, until), self._unseen = self._unseen, None
        if self._run.loop.now < until:
            self._run.faults.did(kind, number, "controllers")
            self._run.loop.create_task(self._delete_unseen(name))

    async def _delete_unseen(self, name: str) -> None:
        await asyncio.sleep(0.5)
        pod = self._run.server.objects("pods").get(f"default/{name}")
        if pod is not None:
            await self._run.server.call("user", "DELETE", f"{CORE}/pods/{name}", at_once(pod["metadata"]["uid"]))
            self._run.note(f"pod {name} is deleted, and no watch has returned it")
        for stream in self._watches("controllers"):
            stream.expire()
