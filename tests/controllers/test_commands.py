"""Which Commands the controllers execute on queues."""

import pytest

from tests.controllers.small_api import SmallApi
from tests.controllers.world import World, command, job, queue
from volcano_py.api import kinds, names
from volcano_py.controllers.options import parse_flags


@pytest.fixture
async def api():
    made = await SmallApi().start()
    for name in ("root", "default", "team"):
        made.put(queue(name))
    yield made
    await made.stop()


async def run(api, *arguments):
    world = World(api)
    world.options = parse_flags(["--leader-elect=false", "--watch-with-kopf=false", *arguments])
    await world.start()
    return world


def state(world, name):
    return world.api.get(kinds.QUEUE, name)["status"]["state"]


def checked(record="CloseQueue team", target="team"):
    made = command("CloseQueue", kinds.QUEUE, target)
    made["metadata"]["annotations"] = {names.QUEUE_ACCESS_CHECKED: record, names.QUEUE_ACCESS_USER: "jane"}
    return made


async def test_by_default_no_command_acts_on_a_queue(api):
    """A tenant who may create Commands in a namespace closed any queue of the cluster."""
    world = await run(api)
    try:
        world.api.put(checked())
        await world.until(lambda: world.events("CommandRejected"))
        await world.quiet()
        assert state(world, "team") == "Open"
        assert world.api.all(kinds.COMMAND) == [], "it is not executed later, when the flags change"
        (text,) = world.events("CommandRejected")
        assert "CloseQueue by the Command lab/closequeue-team was not executed" in text
        assert "--queue-command-namespaces=lab" in text
    finally:
        await world.kill()


async def test_commands_for_jobs_need_no_flag(api):
    world = await run(api)
    try:
        world.api.put(job())
        await world.until(lambda: world.phase() == "Pending")
        world.api.put(command("AbortJob", kinds.JOB, "train"))
        await world.until(lambda: world.phase() == "Aborted")
    finally:
        await world.kill()


@pytest.mark.parametrize(
    ("arguments", "made", "end"),
    [
        (("--queue-commands=checked",), checked(), "Closed"),
        (("--queue-commands=checked",), checked("OpenQueue team"), "Open"),
        (("--queue-commands=checked",), checked("CloseQueue other"), "Open"),
        (("--queue-commands=checked",), command("CloseQueue", kinds.QUEUE, "team"), "Open"),
        (("--queue-command-namespaces=ops, lab",), command("CloseQueue", kinds.QUEUE, "team"), "Closed"),
        (("--queue-command-namespaces=*",), command("CloseQueue", kinds.QUEUE, "team"), "Closed"),
        (("--queue-command-namespaces=ops",), command("CloseQueue", kinds.QUEUE, "team"), "Open"),
    ],
    ids=["checked", "another action", "another queue", "not checked", "listed", "all", "not listed"],
)
async def test_checked_and_listed_ones_act(api, arguments, made, end):
    world = await run(api, *arguments)
    try:
        world.api.put(made)
        await world.until(lambda: world.events("CommandRejected") if end == "Open" else state(world, "team") == end)
        await world.quiet()
        assert state(world, "team") == end
        by = ", requested by jane" if arguments == ("--queue-commands=checked",) else ""
        issued = f"Start to execute command CloseQueue of the Command lab/closequeue-team{by}"
        assert world.events("CommandIssued") == ([issued] if end == "Closed" else [])
    finally:
        await world.kill()


@pytest.mark.parametrize("name", ["root", "default"])
async def test_root_and_default_stay_open(api, name):
    world = await run(api, "--queue-command-namespaces=*", "--queue-commands=checked")
    try:
        world.api.put(checked(f"CloseQueue {name}", name))
        await world.until(lambda: world.events("CommandRejected"))
        await world.quiet()
        assert state(world, name) == "Open"
    finally:
        await world.kill()


async def test_a_command_that_is_being_deleted_is_not_executed(api):
    """Updates of objects that are being deleted pass admission: their record proves nothing."""
    made = checked()
    made["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a/b"]}
    api.put(made)
    world = await run(api, "--queue-commands=checked")
    try:
        api.put(queue("late", state=""))
        await world.until(lambda: world.api.get(kinds.QUEUE, "late")["status"].get("state"))
        await world.quiet()
        assert state(world, "team") == "Open"
    finally:
        await world.kill()
