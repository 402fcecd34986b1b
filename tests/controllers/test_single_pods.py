"""Pods that need no PodGroup: none is created, queues count them, and a scheduler that waits for one gets it."""

from __future__ import annotations

import pytest

from tests.controllers.conftest import queue
from tests.controllers.small_api import SmallApi
from tests.controllers.test_plain_pods import LEAST, QUEUE, group_of, pod
from tests.controllers.world import World
from volcano_py.api import kinds
from volcano_py.api.codec import from_manifest
from volcano_py.api.core import Pod
from volcano_py.controllers.podgroup import controller
from volcano_py.controllers.podgroup.served import GRACE, Served


@pytest.fixture
async def world():
    api = await SmallApi().start()
    for name in ("root", "default", "team"):
        api.put(queue(name))
    made = World(api)
    made.options.pod_groups_of_single_pods = False
    await made.start()
    yield made
    await made.kill()
    await api.stop()


def counted(world, name="default"):
    status = world.api.get(kinds.QUEUE, name).get("status") or {}
    return {
        phase: number for phase, number in status.items() if phase in ("pending", "running", "completed") and number
    }


def owner(world, kind="ReplicaSet", **annotations):
    metadata = {"name": "o", "annotations": annotations}
    group = "batch/v1" if kind == "Job" else "apps/v1"
    return world.api.put({"apiVersion": group, "kind": kind, "metadata": metadata, "spec": {"replicas": 2}})


async def test_a_pod_alone_gets_no_group_and_counts_in_its_queue(world):
    world.api.put(pod())
    world.api.put(pod("other", annotations={QUEUE: "team"}))
    await world.until(lambda: counted(world) == {"pending": 1} and counted(world, "team") == {"pending": 1})
    assert world.podgroups() == [] and group_of(world, "web-0") is None


async def test_replicas_are_one_job_without_an_object_in_the_queue_of_their_owner(world):
    of = owner(world, **{QUEUE: "team"})
    for name in ("web-0", "web-1"):
        world.api.put(pod(name, of))
    await world.until(lambda: counted(world, "team") == {"pending": 1})
    assert world.podgroups() == []


async def test_a_closed_queue_with_a_pod_is_closing_until_it_is_gone(world):
    world.api.put(pod())
    await world.until(lambda: counted(world) == {"pending": 1})
    world.api.change(kinds.QUEUE, "default", {"status": {"state": "Closing"}})
    world.api.put(pod("more"))
    await world.quiet()
    assert world.api.get(kinds.QUEUE, "default")["status"]["state"] == "Closing"
    for name in ("web-0", "more"):
        world.api.delete(kinds.POD, name)
    await world.until(lambda: world.api.get(kinds.QUEUE, "default")["status"]["state"] == "Closed")


@pytest.mark.parametrize("needs", ["minimum", "batch Job", "topology"])
async def test_what_only_a_group_has_gets_a_group(world, needs):
    if needs == "topology":
        world.api.put(pod(annotations={"volcano.sh/network-topology-mode": "hard"}))
    else:
        of = owner(world, **{LEAST: "2"}) if needs == "minimum" else owner(world, "Job")
        world.api.put(pod("web-0", of))
    await world.until(lambda: world.podgroups() and group_of(world, "web-0"))


async def test_a_scheduler_that_waits_for_groups_gets_them(world, monkeypatch):
    monkeypatch.setattr(controller, "GRACE", 0.05)
    monkeypatch.setattr("volcano_py.controllers.podgroup.served.GRACE", 0.05)
    world.api.put(pod())
    await world.until(lambda: group_of(world, "web-0"))
    world.api.put(pod("next"))
    await world.until(lambda: group_of(world, "next"))


def test_one_reaction_proves_that_a_scheduler_places_pods_without_groups():
    served = Served()
    a, b = (from_manifest(Pod, pod(name)) for name in ("a", "b"))
    served.waits(a, 0.0)
    served.waits(b, 1.0)
    assert served.due(GRACE - 1) == ([], 1.0)
    placed = from_manifest(Pod, pod("a", nodeName="n"))
    assert served.changed(placed, GRACE - 0.5), "the scheduler is at work, only slow"
    found, pause = served.due(GRACE + 2)
    assert found == [] and pause is not None
    assert served.due(2 * GRACE)[0] == [b.key] and served.without == {"volcano"}
    served.waits(a, 2 * GRACE)
    assert served.changed(placed, 2 * GRACE + 1) and served.without == set()


def test_a_gate_of_the_api_server_is_no_reaction():
    served = Served()
    gated = pod("a")
    gated["status"] = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]}
    one = from_manifest(Pod, gated)
    served.waits(one, 0.0)
    assert not served.changed(one, 1.0)


async def test_a_withdrawn_annotation_is_written_again(world):
    """An API server that was restored from a backup may have the PodGroup, and the pod without its annotation."""
    world.api.put(pod("web-0", owner(world, "Job")))
    name = await world.until(lambda: group_of(world, "web-0"))
    world.api.change(kinds.POD, "web-0", {"metadata": {"annotations": {"scheduling.k8s.io/group-name": None}}})
    await world.until(lambda: group_of(world, "web-0") == name)
