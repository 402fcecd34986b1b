"""A tenant with the chart's role for editors of Jobs cannot close queues."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.sandbox.apiserver.test_impersonation import JANE, grant, rule
from tests.sandbox.clients import Http, http
from volcano_py.sandbox.apiserver.registry.request import User
from volcano_py.sandbox.cluster import Sandbox

COMMANDS = "/apis/bus.volcano.sh/v1alpha1/namespaces/default/commands"


@pytest.fixture
async def api() -> AsyncIterator[Http]:
    users = {JANE: User("jane", ("developers", "system:authenticated"))}
    async with Sandbox(nodes=0, users=users) as sandbox, http(sandbox) as client:
        yield client


def command(queue: str) -> dict[str, object]:
    target = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "name": queue, "uid": "u"}
    return {
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": {"generateName": "close-"},
        "action": "CloseQueue",
        "target": target,
    }


async def test_only_who_may_update_the_queue_creates_a_command_for_it(api: Http) -> None:
    bus, queues = "bus.volcano.sh", "scheduling.volcano.sh"
    await grant(api, rule("commands", group=bus, verb="create"))
    status, answer = await api.call("POST", COMMANDS, command("team"), token=JANE)
    assert (status, "user 'jane' may not open or close queue team" in answer["message"]) == (400, True)
    await grant(api, rule("commands", group=bus, verb="create"), rule("queues", "team", group=queues, verb="update"))
    status, answer = await api.call("POST", COMMANDS, command("team"), token=JANE)
    record = {"volcano.sh/queue-access-checked": "CloseQueue team", "volcano.sh/queue-access-user": "jane"}
    assert (status, answer["metadata"]["annotations"]) == (201, record)
    assert (await api.call("POST", COMMANDS, command("other"), token=JANE))[0] == 400
    assert (await api.call("POST", COMMANDS, command("default")))[0] == 400, "not even an administrator"
