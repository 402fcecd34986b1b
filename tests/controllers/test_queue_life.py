"""Queues through the running controller-manager, and the queue state machine by itself."""

import asyncio

import pytest

from tests.conformance.controllers.comparing import resting, see
from tests.controllers.small_api import Denied
from tests.controllers.world import command, queue
from volcano_py.api import bus, kinds
from volcano_py.api.codec import from_manifest
from volcano_py.api.scheduling import Queue
from volcano_py.controllers.queue import counters
from volcano_py.controllers.queue.controller import QueueController
from volcano_py.controllers.queue.reconcile import Blocked, Observed, next_state, reconcile

GROUP = {
    "apiVersion": "scheduling.volcano.sh/v1beta1",
    "kind": "PodGroup",
    "metadata": {"name": "g"},
    "spec": {"queue": "team"},
    "status": {"phase": "Running"},
}


def state(world, name):
    return (world.api.get(kinds.QUEUE, name) or {}).get("status", {}).get("state", "")


async def test_a_new_queue_is_opened_and_put_below_root(world):
    manifest = queue("team", state="")
    del manifest["spec"]["parent"]
    world.api.put(manifest)
    await world.until(lambda: state(world, "team") == "Open")
    await world.until(lambda: world.api.get(kinds.QUEUE, "team")["spec"].get("parent") == "root")


async def test_closing_waits_until_the_last_podgroup_is_gone(world):
    world.api.put(queue("team"))
    world.api.put(GROUP)
    world.api.put(command("CloseQueue", kinds.QUEUE, "team"))
    await world.until(lambda: state(world, "team") == "Closing")
    await world.until(lambda: world.api.all(kinds.COMMAND) == [])
    world.api.delete(kinds.PODGROUP, "g")
    await world.until(lambda: state(world, "team") == "Closed")
    assert "Close queue succeed" in world.events("CloseQueue")
    world.api.put(command("OpenQueue", kinds.QUEUE, "team"))
    await world.until(lambda: state(world, "team") == "Open")


async def test_closing_does_not_wait_for_a_podgroup_that_has_moved_away(world):
    for name in ("team", "other"):
        world.api.put(queue(name))
    world.api.put(GROUP)
    world.api.put(command("CloseQueue", kinds.QUEUE, "team"))
    await world.until(lambda: state(world, "team") == "Closing")
    world.api.change(kinds.PODGROUP, "g", {"spec": {"queue": "other"}})
    await world.until(lambda: state(world, "team") == "Closed")


async def test_children_are_closed_and_opened_with_their_parent(world):
    for one in (queue("dept"), queue("a", parent="dept"), queue("b", parent="dept"), queue("c", parent="b")):
        world.api.put(one)
    world.api.put(command("CloseQueue", kinds.QUEUE, "a"))
    await world.until(lambda: state(world, "a") == "Closed")
    world.api.put(command("CloseQueue", kinds.QUEUE, "dept"))
    await world.until(lambda: [state(world, name) for name in ("dept", "b", "c")] == ["Closed"] * 3)

    world.api.put(command("OpenQueue", kinds.QUEUE, "c"))
    await world.quiet()
    assert state(world, "c") == "Closed", "not below a closed parent"

    world.api.put(command("OpenQueue", kinds.QUEUE, "dept"))
    await world.until(lambda: [state(world, name) for name in ("dept", "b", "c")] == ["Open"] * 3)
    await world.quiet()
    assert state(world, "a") == "Closed", "closed on its own account, it stays closed"


async def test_a_queue_made_below_a_closed_one_is_closed(world):
    world.api.put(queue("dept", state="Closed"))
    world.api.put(queue("late", state="", parent="dept"))
    await world.until(lambda: state(world, "late") == "Closed")
    marks = world.api.get(kinds.QUEUE, "late")["metadata"]["annotations"]
    assert marks["volcano.sh/closed-by-parent"] == "true"


async def test_only_the_status_is_written(world):
    world.api.put(queue("team"))
    await world.quiet()
    before = len(world.api.writes)
    world.api.put(GROUP)
    world.api.change(kinds.PODGROUP, "g", {"status": {"phase": "Completed"}})
    await world.quiet()
    assert {one.rpartition("/queues/")[2] for one in world.api.writes[before:]} <= {"team/status"}


def seen(name="team", now="Open", members=0, **fields):
    return Observed(queue=from_manifest(Queue, queue(name, now)), members=members, **fields)


def test_root_cannot_be_closed():
    instructions, follow_ups = reconcile(seen("root"), bus.CLOSE_QUEUE)
    assert [instruction.reason for instruction in instructions] == ["CloseQueue"]
    assert follow_ups == []


def test_a_missing_parent_is_waited_for():
    one = seen()
    one.queue.spec.parent = "dept"
    with pytest.raises(Blocked, match="its parent dept does not exist"):
        reconcile(one, bus.SYNC_QUEUE)


@pytest.mark.parametrize(
    ("now", "action", "members", "expected"),
    [
        ("", bus.SYNC_QUEUE, 0, ("sync", "Open")),
        ("Open", bus.CLOSE_QUEUE, 2, ("close", "Closing")),
        ("Open", bus.CLOSE_QUEUE, 0, ("close", "Closed")),
        ("Closing", bus.SYNC_QUEUE, 1, ("sync", "Closing")),
        ("Closing", bus.SYNC_QUEUE, 0, ("sync", "Closed")),
        ("Closing", bus.OPEN_QUEUE, 1, ("open", "Open")),
        ("Closed", bus.SYNC_QUEUE, 3, ("sync", "Closed")),
        ("Closed", "Anything", 0, ("sync", "Closed")),
        ("Unknown", bus.SYNC_QUEUE, 0, ("sync", "Unknown")),
        ("Unknown", bus.CLOSE_QUEUE, 1, ("close", "Closing")),
    ],
)
def test_states(now, action, members, expected):
    assert next_state(now, action, members) == expected


def test_an_unknown_state_is_an_error():
    with pytest.raises(ValueError, match="queue state 'Ajar' is invalid"):
        next_state("Ajar", bus.SYNC_QUEUE, 0)


async def test_an_existing_queue_whose_name_no_label_can_have_is_reported(world):
    name = "q" * 64
    world.api.put(queue(name))
    [condition] = await world.until(lambda: world.api.get(kinds.QUEUE, name)["status"].get("conditions"))
    assert condition["reason"] == "InvalidQueue" and "volcano.sh/queue-name" in condition["message"]


async def test_the_status_counts_podgroups_by_phase(world, monkeypatch):
    """kubectl get queue showed no numbers: no component wrote them."""
    monkeypatch.setattr(counters, "SECONDS", 0.2)
    world.api.put(queue("team"))
    for number, phase in enumerate(("Running", "Pending", "", "Inqueue", "Completed")):
        group = GROUP | {"metadata": {"name": f"g{number}"}, "status": {"phase": phase} if phase else {}}
        world.api.put(group)

    def counted():
        status = world.api.get(kinds.QUEUE, "team")["status"]
        return tuple(status.get(name) for name in counters.PHASES)

    await world.until(lambda: counted() == (2, 1, 1, 0, 1))
    world.api.change(kinds.PODGROUP, "g1", {"status": {"phase": "Running"}})
    await world.until(lambda: counted() == (1, 1, 2, 0, 1))
    assert state(world, "team") == "Open"
    world.api.put(command("CloseQueue", kinds.QUEUE, "team"))
    await world.until(lambda: state(world, "team") == "Closing")
    assert counted() == (1, 1, 2, 0, 1), "the other fields of the status stay"


async def test_counters_of_a_late_write_are_corrected(world, monkeypatch):
    """A write that was answered with an error took effect when the PodGroups had changed. Found by the simulation."""
    monkeypatch.setattr(counters, "SECONDS", 0.2)
    world.api.put(queue("team"))
    world.api.put(GROUP)
    status = {"running": 1, "pending": 0}
    await world.until(lambda: world.api.get(kinds.QUEUE, "team")["status"].items() >= status.items())
    world.api.change(kinds.QUEUE, "team", {"status": {"running": 0, "pending": 1}})
    await world.until(lambda: world.api.get(kinds.QUEUE, "team")["status"].items() >= status.items())


async def test_counters_are_written_at_a_bounded_rate(world):
    world.api.put(queue("team"))
    world.api.put(GROUP)
    await world.until(lambda: world.api.get(kinds.QUEUE, "team")["status"].get("running") == 1)
    before = len(world.api.writes)
    for phase in ("Pending", "Inqueue", "Running", "Unknown") * 3:
        world.api.change(kinds.PODGROUP, "g", {"status": {"phase": phase}})
        await world.quiet(0.02)
    assert [one for one in world.api.writes[before:] if "queues/team/status" in one] == []


def test_more_queues_are_written_less_often():
    pace = counters.Pace()
    assert pace.wait("a", 1, 100.0) == 0.0
    pace.wrote("a", 100.0)
    assert pace.wait("a", 1, 101.0) == 4.0
    assert pace.wait("a", 1000, 101.0) == 99.0
    assert pace.wait("b", 1000, 101.0) == 0.0


async def test_a_status_that_is_denied_for_long_is_written_in_the_end(world):
    """No event would begin the synchronization again when the API server accepts it."""
    await world.kill()
    world.options.max_requeue_num = 1
    await world.start()
    denied = 0

    def deny(method, path):
        nonlocal denied
        if denied < 5 and method in ("PUT", "PATCH") and path.endswith("/queues/team/status"):
            denied += 1
            return Denied(422, "Invalid", "Queue team is invalid")
        return None

    world.api.denial_of = deny
    world.api.put(queue("team", state=""))
    await world.until(lambda: state(world, "team") == "Open")
    assert denied == 5
    assert any("SyncQueue failed" in text for text in world.events("SyncQueue"))


async def test_what_a_queue_contains_is_counted_once_for_many_changes():
    cluster = resting()
    controller = QueueController(cluster)
    see(cluster, [queue("team")])
    while len(controller.queue):
        controller.queue.done(await controller.queue.get())
    see(cluster, [{**GROUP, "metadata": {"name": f"g{i}", "namespace": "default", "uid": f"g{i}"}} for i in range(50)])
    assert not len(controller.queue) and "team" in controller._pending, "counted at once"
    assert await asyncio.wait_for(controller.queue.get(), 30) == "team"
    assert not len(controller.queue)
