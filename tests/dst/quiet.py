"""The end of a run, without faults: what fits is bound, the model equals a fresh one, a restart changes nothing."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from tests.dst import devices_oracle, native_gangs
from tests.dst.fits import Objects, what_fits
from tests.dst.oracle import OBSERVED, owned_by, state_of
from tests.dst.replicas import SchedulerReplica

if TYPE_CHECKING:
    from tests.dst.run import Run

AT_LEAST = 70.0
"""Seconds after the faults in which every back-off has ended: none is longer than a minute."""
SETTLE = 180.0
"""Seconds after the faults in which everything that fits must be bound: watches that are silent are reopened after 45
seconds, and no back-off is longer than a minute."""
POLL = 5.0
UNCHANGED = 12.0
"""Seconds without a change after which nothing more is expected: the counters of queues are written every 5 seconds."""
RESTART = 35.0
"""Seconds after a restart in which nothing may change."""


class Quiet:
    """The checks after the faults."""

    def __init__(self, run: Run) -> None:
        self.run = run

    async def check(self) -> None:
        run = self.run
        run.note("the faults stop")
        run.faults.active = False
        for replica in run.replicas:
            replica.heal()
            replica.clock.jumped = 0.0
        for stream in run.network.streams:
            stream.hasten()
        await run.cluster.calm()
        await self._settle()
        if not run.oracle.violations:
            await self._restart()

    def _objects(self) -> Objects:
        return {kind: self.run.server.objects(kind) for kind in OBSERVED}

    def _left(self) -> list[str]:
        """What should have happened, and has not."""
        objects = self._objects()
        alone = self.run.cluster.configuration == "enqueue"
        left = [f"{text} fit, and are not bound" for text in what_fits(objects, alone)]
        for key, job in self.run.server.objects("jobs.batch.volcano.sh").items():
            left += self._job(key, job, objects)
        cluster = self.run.cluster
        return left + cluster.topology.left() + cluster.commands.left() + cluster.flows.left()

    def _job(self, key: str, job: dict[str, Any], objects: Objects) -> list[str]:
        """A Job whose PodGroup is admitted has its pods."""
        uid, state = job["metadata"]["uid"], state_of(job)
        if state not in ("", "Pending", "Running") or job["metadata"].get("deletionTimestamp"):
            return []
        groups = [group for group in objects["podgroups.scheduling.volcano.sh"].values() if owned_by(group, uid)]
        if not groups:
            return [f"Job {key} has no PodGroup"]
        phase = (groups[0].get("status") or {}).get("phase")
        if phase in ("", None, "Pending"):
            alone = self.run.cluster.configuration != "enqueue"
            queue = objects["queues.scheduling.volcano.sh"].get(job["spec"].get("queue") or "default") or {}
            is_open = (queue.get("status") or {}).get("state") == "Open"
            return [f"the PodGroup of Job {key} is not admitted"] if alone and is_open else []
        wanted = sum(task["replicas"] for task in job["spec"]["tasks"])
        pods = [pod for pod in objects["pods"].values() if owned_by(pod, uid)]
        return [f"Job {key} ({state}) has {len(pods)} of {wanted} pods"] if len(pods) < wanted else []

    async def _settle(self) -> None:
        run, begun = self.run, self.run.loop.now
        while True:
            await asyncio.sleep(POLL)
            spent = run.loop.now - begun
            for text in await run.cluster.crons.left(run.loop.now, spent):
                run.wrong(text)
            left = self._left()
            if not any(isinstance(r, SchedulerReplica) and r.leading for r in run.replicas):
                left.append("there is no leader")
            if run.loop.now - run.last_change < UNCHANGED:
                left.append("statuses still change")
            if not left and spent >= AT_LEAST:
                return
            if spent >= SETTLE:
                for text in left[:3]:
                    run.wrong(f"{SETTLE:g} s after the faults: {text}")
                self._describe()
                return

    def _describe(self) -> None:
        """The objects as lines of the log."""
        objects = self._objects()
        for name, model in self._models().items():
            for key, pod in objects["pods"].items():
                where = pod["spec"].get("nodeName", "")
                if (known := model.get(f"pod {key}", ("", "", ""))[2]) != where:
                    self.run.note(f"{name} has pod {key} on {known or 'no node'}, and it is on {where or 'none'}")
        for kind, found in (*objects.items(), ("jobs", self.run.server.objects("jobs.batch.volcano.sh"))):
            for key, obj in found.items():
                metadata = {
                    k: v for k, v in obj["metadata"].items() if k in ("annotations", "deletionTimestamp", "labels")
                }
                self.run.note(f"{kind} {key}: {metadata} {obj.get('spec')} {obj.get('status')}")

    def _models(self) -> dict[str, dict[str, Any]]:
        return {r.name: model_of(r) for r in self.run.replicas if isinstance(r, SchedulerReplica) and r.process}

    async def _restart(self) -> None:
        run = self.run
        before = self._models()
        run.note("all processes are restarted")
        run.watching = True
        for replica in run.replicas:
            replica.kill()
        await asyncio.sleep(RESTART)
        for text in run.changes[:3]:
            run.wrong(f"a restart changes something: {text}")
        if run.changes:
            return
        for name, model in self._models().items():
            if not model:
                run.wrong(f"{name} is not ready {RESTART:g} s after its restart")
            for key in sorted(model.keys() | before.get(name, model).keys()):
                old, new = before.get(name, model).get(key), model.get(key)
                if old != new:
                    run.wrong(f"the model of {name} has {key} as {old}, and a fresh one as {new}")
                    return


def model_of(replica: SchedulerReplica) -> dict[str, Any]:
    """What a scheduler's model says about nodes, pods, jobs and queues, as plain values."""
    scheduler = replica.scheduler
    if scheduler is None or not scheduler.cache.ready.is_set():
        return {}
    model = scheduler.cache.model
    model.claims.settle()  # as each cycle does, of which a standby has none
    found: dict[str, Any] = {}
    nodes = model.nodes
    for name, column in nodes.index.items():
        for resource, row in nodes.rows.items():
            if resource == devices_oracle.EXTENDED:
                continue  # counted once a pod has requested it: earlier pods do not count in a fresh model
            for array in ("allocatable", "idle", "used", "releasing", "foreign", "kube_requested"):
                value = float(getattr(nodes.numbers, array)[row][column])
                if value:
                    found[f"{array} {resource} of node {name}"] = value
    for key, task in model.tasks.items():
        found[f"pod {key}"] = (task.uid, str(task.status), task.node)
    for key, job in model.jobs.items():
        # The phase of a native gang is in no object: each session derives it.
        in_object = job.pod_group is not None and native_gangs.JOB not in key
        phase = job.pod_group.status.phase if in_object else None
        found[f"job {key}"] = (phase, sorted(model_tasks(job)))
    for name, queue in model.queues.items():
        found[f"queue {name}"] = queue.object.status.state
    return found


def model_tasks(job: Any) -> list[str]:
    """The keys of a job's pods."""
    return [task.key for task in job.tasks.values()]
