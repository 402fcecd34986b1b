"""A 409 although nothing has changed: the API server may respond with one. Found by the simulation under faults."""

from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock, Mock

import pytest

from volcano_py.api.batch import CronJob, CronJobSpec, Job, JobSpec, JobState, JobStatus
from volcano_py.api.bus import Command
from volcano_py.api.kinds import COMMAND, HYPERNODE, POD, PODGROUP
from volcano_py.api.meta import ObjectMeta, parse_time
from volcano_py.api.scheduling import PodGroup
from volcano_py.api.topology import HyperNode, HyperNodeSpec
from volcano_py.controllers.cronjob.controller import CronJobController
from volcano_py.controllers.executor import Executor
from volcano_py.controllers.garbage import GarbageController
from volcano_py.controllers.hypernode.controller import HyperNodeController
from volcano_py.controllers.instructions import Create, Delete
from volcano_py.controllers.owned import StillThere
from volcano_py.kube.client import Client
from volcano_py.kube.errors import AlreadyExists, Conflict, NotFound


class Server:
    """Responds to deletions with 409, and has an object with this UID."""

    def __init__(self, uid: str) -> None:
        self.uid = uid

    async def delete(self, *_: Any, **__: Any) -> None:
        raise Conflict(409, "Conflict", "")

    async def list(self, *_: Any, **__: Any) -> list[dict[str, Any]]:
        return [{"metadata": {"name": "g", "namespace": "default", "uid": self.uid}}] if self.uid else []


class Mirror:
    """Notes what is forgotten."""

    def __init__(self) -> None:
        self.forgotten: list[str] = []

    def on(self, **_: Any) -> None:
        pass

    def forget(self, key: str, uid: str) -> None:
        self.forgotten.append(key)


def executor(uid: str) -> tuple[Executor, Mirror]:
    made, mirror = Executor(cast(Client, Server(uid))), Mirror()
    made.attach(PODGROUP, cast(Any, mirror))
    return made, mirror


ABOUT = PodGroup(metadata=ObjectMeta(name="owner", namespace="default", uid="o"))
DELETE = Delete(PODGROUP, "default", "g", uid="1")


async def test_an_object_that_still_exists_is_not_forgotten() -> None:
    """A Job that restarts waited for ever for the admission of a PodGroup that it took for deleted."""
    made, mirror = executor("1")
    with pytest.raises(Conflict):
        await made.carry_out([DELETE], ABOUT)
    assert mirror.forgotten == []


@pytest.mark.parametrize("uid", ("", "2"))
async def test_an_object_that_is_gone_or_replaced_is_forgotten(uid: str) -> None:
    made, mirror = executor(uid)
    await made.carry_out([DELETE], ABOUT)
    assert mirror.forgotten == ["default/g"]


def creation(answer: AsyncMock) -> tuple[Executor, Mock, Create]:
    """The creation of a pod whose name is taken; `answer`: what a read of it returns."""
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "uid": "o", "controller": True}
    pod = {"metadata": {"name": "p", "namespace": "default", "uid": "1", "ownerReferences": [owner]}}
    answer.return_value = pod
    mirror = Mock()
    mirror.get.return_value = None
    taken = AsyncMock(side_effect=AlreadyExists(409, "AlreadyExists", ""))
    made = Executor(cast(Client, AsyncMock(create=taken, get=answer)))
    made.attach(POD, mirror)
    return made, mirror, Create(POD, pod)


async def test_a_pod_that_an_earlier_request_has_created_is_noted() -> None:
    """The request was answered with an error. A Job waited for ever for such a pod, which was deleted before a watch
    returned it."""
    made, mirror, create = creation(AsyncMock())
    await made.carry_out([create], ABOUT)
    mirror.note.assert_called_once_with(create.obj)


async def test_a_pod_that_was_deleted_meanwhile_is_created_again() -> None:
    made, mirror, create = creation(AsyncMock(side_effect=NotFound(404, "NotFound", "")))
    with pytest.raises(StillThere, match="deleted while it was created"):
        await made.carry_out([create], ABOUT)
    mirror.note.assert_not_called()


async def test_a_command_that_still_exists_is_tried_again() -> None:
    command = Command(metadata=ObjectMeta(name="g", namespace="default", uid="1"))
    with pytest.raises(Conflict):
        await executor("1")[0].take(COMMAND, command)
    assert not await executor("2")[0].take(COMMAND, command)


async def test_the_end_of_a_ttl_is_read_from_the_clock_each_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of day was an hour behind when a Job finished, and was corrected. Found by the simulation."""
    finished = Job(
        metadata=ObjectMeta(name="j", namespace="default", uid="1"),
        spec=JobSpec(ttl_seconds_after_finished=5),
        status=JobStatus(state=JobState(phase="Completed", last_transition_time="2026-01-01T01:00:00Z")),
    )
    mirror = cast(Any, {"default/j": finished})
    cluster = SimpleNamespace(
        mirror=lambda _: SimpleNamespace(on=lambda **_: None, get=mirror.get), executor=AsyncMock()
    )
    controller = GarbageController(cast(Any, cluster), clock=lambda: parse_time("2026-01-01T00:00:00Z"))
    delays: list[float] = []
    monkeypatch.setattr(controller.queue, "add_after", lambda key, seconds: delays.append(seconds))
    await controller.process("default/j")
    assert delays == [60.0]


async def test_a_hypernode_whose_status_is_not_accepted_is_tried_less_and_less_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was tried 20 times a second. Found by the simulation."""
    hypernode = HyperNode(metadata=ObjectMeta(name="h"), spec=HyperNodeSpec(tier=1))
    executor = SimpleNamespace(carry_out=AsyncMock(side_effect=Conflict(409, "Conflict", "")))
    hypernodes, nodes = {"h": hypernode}, SimpleNamespace(all=list, get=lambda _: None, on=lambda **_: None)
    cluster = SimpleNamespace(
        mirror=lambda kind: (
            SimpleNamespace(get=hypernodes.get, all=hypernodes.values, on=lambda **_: None)
            if kind is HYPERNODE
            else nodes
        ),
        mirror_one=lambda *_: nodes,
        executor=executor,
    )
    controller = HyperNodeController(cast(Any, cluster), place=("a", "b"))
    delays: list[float] = []
    monkeypatch.setattr(controller.queue, "add_after", lambda key, seconds: delays.append(seconds))
    for _ in range(4):
        await controller.process("status/h")
    assert delays == sorted(set(delays)) and delays[3] == 8 * delays[0]


async def test_a_cronjob_is_reconciled_each_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of day was an hour behind when the next start was computed, and was corrected. Found by the
    simulation."""
    now = parse_time("2026-01-01T00:00:00Z")
    cronjob = CronJob(
        metadata=ObjectMeta(name="c", namespace="default", uid="1", creation_timestamp="2026-01-01T00:00:00Z"),
        spec=CronJobSpec(schedule="@every 1h"),
    )
    mirror = SimpleNamespace(get=lambda _: cronjob, by_index=lambda _: [], on=lambda **_: None)
    cluster = SimpleNamespace(mirror=lambda _: mirror, executor=AsyncMock())
    controller = CronJobController(cast(Any, cluster), clock=lambda: now)
    delays: list[float] = []
    monkeypatch.setattr(controller.queue, "add_after", lambda key, seconds: delays.append(seconds))
    await controller.process("default/c")
    assert delays == [60.0]
