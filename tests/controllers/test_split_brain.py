"""Two controller-managers at work at the same time, as when a Lease is lost unnoticed."""

from __future__ import annotations

from itertools import groupby

import pytest

from tests.controllers.world import World, job, queue, task
from volcano_py.api import kinds


@pytest.fixture
async def rival(world):
    """A second manager on the same API."""
    other = World(world.api)
    await other.start()
    yield other
    await other.kill()


def phases(world):
    """The phases of the job in the order in which they were stored."""
    jobs = [obj for _, kind, _, obj in world.api.events if kind == "jobs"]
    stored = [job.get("status", {}).get("state", {}).get("phase") for job in jobs]
    return [phase for phase, _ in groupby(phase for phase in stored if phase)]


def made(world, plural):
    """(name, uid) of everything of a kind that was ever made."""
    return [
        (obj["metadata"]["name"], obj["metadata"]["uid"])
        for _, kind, what, obj in world.api.events
        if kind == plural and what == "ADDED"
    ]


async def test_no_pod_is_made_twice_and_no_status_flaps(world, rival):
    policies = [{"event": "PodFailed", "action": "RestartJob"}]
    world.api.put(job(task(replicas=6), policies=policies, plugins={"svc": []}))
    for _ in range(2):
        await world.until(world.podgroups)
        world.admit()
        await world.until(lambda: len(world.pods()) == 6)
        world.run_pods()
        await world.until(lambda: world.phase() == "Running")
        await world.quiet()
        if not world.status().get("retryCount"):
            world.run_pods("Failed", "work-3", exit_code=1)
            await world.reaped(lambda: world.phase() == "Pending")
    world.run_pods("Succeeded")
    await world.until(lambda: world.phase() == "Completed")
    await world.quiet()
    assert phases(world) == ["Pending", "Running", "Restarting", "Pending", "Running", "Completed"]
    assert world.status()["retryCount"] == 1
    assert len(made(world, "pods")) == 12
    assert len(made(world, "podgroups")) == 2
    before = len(world.api.writes)
    await world.quiet(0.5)
    assert len(world.api.writes) == before


async def test_queues_and_plain_pods(world, rival):
    world.api.put(queue("team", state=""))
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "alone"},
        "spec": {"schedulerName": "volcano", "containers": [{"name": "main", "image": "busybox:1"}]},
    }
    world.api.put(pod)
    await world.until(world.podgroups)
    await world.quiet()
    assert len(made(world, "podgroups")) == 1
    queues = [obj for _, kind, _, obj in world.api.events if kind == "queues"]
    states = [one["status"].get("state") for one in queues if "status" in one]
    assert "Closed" not in states
    assert world.api.get(kinds.QUEUE, "team")["status"]["state"] == "Open"
