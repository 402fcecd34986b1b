"""kopf as a source of what controllers see: complete, in order, and without a trace on anybody's objects."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from test_jobflow import entry, flow, template

from volcano_py.api import kinds
from volcano_py.api.flow import JobFlow, JobTemplate
from volcano_py.controllers import manager
from volcano_py.controllers.kopf_watch import HandFeed, HandWatch
from volcano_py.controllers.options import Options
from volcano_py.kube import Client
from volcano_py.sandbox.cluster import Sandbox

Manifest = dict[str, Any]


def thing(name: str, version: int, uid: str = "u1", kind: str = "JobFlow") -> Manifest:
    metadata = {"name": name, "namespace": "lab", "uid": uid, "resourceVersion": str(version)}
    return {"apiVersion": kinds.JOBFLOW.api_version, "kind": kind, "metadata": metadata}


class Diary:
    """What a feed told, as text."""

    def __init__(self, feed: HandFeed[Any]) -> None:
        self.lines: list[str] = []
        note = self.lines.append
        feed.on(
            add=lambda one: note(f"add {one.metadata.name} {one.metadata.uid}"),
            update=lambda old, new: note(f"update {new.metadata.name} {new.metadata.resource_version}"),
            delete=lambda one: note(f"delete {one.metadata.name} {one.metadata.uid}"),
        )


async def test_older_news_are_dropped() -> None:
    feed = HandFeed(kinds.JOBFLOW, JobFlow)
    diary = Diary(feed)
    feed.seen(thing("f", 5))
    feed.seen(thing("f", 5))
    feed.seen(thing("f", 4))
    feed.seen(thing("f", 7))
    feed.seen(thing("f", 9, uid="u2"))  # deleted and made anew
    feed.seen(thing("f", 8))
    feed.seen(thing("f", 8), gone=True)
    feed.seen(thing("f", 9, uid="u2"), gone=True)
    assert diary.lines == ["add f u1", "update f 7", "delete f u1", "add f u2", "delete f u2"]


async def test_a_list_tells_what_is_gone_but_not_of_what_is_newer() -> None:
    feed = HandFeed(kinds.JOBFLOW, JobFlow)
    feed.listed([thing("a", 1, "a"), thing("b", 2, "b")], "3")
    assert feed.synced.is_set()
    diary = Diary(feed)
    feed.seen(thing("c", 9, "c"))
    feed.listed([thing("b", 2, "b")], "5")
    assert diary.lines == ["add c c", "delete a a"] and set(feed.store) == {"lab/b", "lab/c"}


async def test_what_cannot_be_read_is_told_and_the_rest_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    feed = HandFeed(kinds.JOBFLOW, JobFlow)
    feed.listed([{**thing("bad", 1, "x"), "spec": {"flows": "all"}}, thing("good", 2, "y")], "3")
    assert set(feed.store) == {"lab/good"} and "JobFlow lab/bad" in caplog.text


# ---- with a cluster


@pytest.fixture
async def client(tmp_path: Path):
    async with (
        Sandbox(0, components=(), path=tmp_path / "kubeconfig") as sandbox,
        Client.from_kubeconfig(sandbox.kubeconfig) as made,
    ):
        await made.create(kinds.NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "lab"}})
        yield made


async def until(holds: Any, seconds: float = 15.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "did not happen"
        await asyncio.sleep(0.02)


def kopf_threads() -> int:
    return sum(thread.name == "kopf" for thread in threading.enumerate())


async def test_kopf_sees_what_happens_and_leaves_no_trace(client: Client) -> None:
    plain = template("before")
    await client.create(kinds.JOBTEMPLATE, plain)
    watch = HandWatch(client)
    feed = watch.feed(kinds.JOBTEMPLATE)
    assert feed is watch.feed(kinds.JOBTEMPLATE)
    diary = Diary(feed)
    task = asyncio.create_task(watch.run())
    await feed.synced.wait()
    assert isinstance(feed.store["lab/before"], JobTemplate)
    await client.create(kinds.JOBTEMPLATE, template("later"))
    await until(lambda: "lab/later" in feed.store)
    await client.patch(kinds.JOBTEMPLATE, "later", {"spec": {"maxRetry": 7}}, "lab")
    await until(lambda: feed.store["lab/later"].spec.max_retry == 7)
    await client.delete(kinds.JOBTEMPLATE, "before", "lab")
    await until(lambda: "lab/before" not in feed.store)
    found = await client.get(kinds.JOBTEMPLATE, "later", "lab")
    assert not {"finalizers", "annotations"} & set(found["metadata"])
    assert not await client.list(kinds.EVENT)
    assert [line.split()[:2] for line in diary.lines] == [
        ["add", "before"],
        ["add", "later"],
        ["update", "later"],
        ["delete", "before"],
    ]
    assert kopf_threads() == 1
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    await until(lambda: kopf_threads() == 0)


async def test_the_controller_manager_works_with_kopf(client: Client) -> None:
    options = Options(leader_elect=False, controllers=["jobflow-controller", "jobtemplate-controller"])
    task = asyncio.create_task(manager.run(client, options))
    await client.create(kinds.JOBTEMPLATE, template("a"))
    await client.create(kinds.JOBFLOW, flow(entry("a"), name="f"))
    names: list[str] = []
    end = time.monotonic() + 15
    while names != ["f-a"]:
        assert time.monotonic() < end and not task.done()
        await asyncio.sleep(0.05)
        names = ((await client.get(kinds.JOBTEMPLATE, "a", "lab")).get("status") or {}).get("jobDependsOnList") or []
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    await until(lambda: kopf_threads() == 0)
