"""kopf as a source of what controllers see: complete, in order, and without a trace on anybody's objects."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import itertools
import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests import waiting
from tests.controllers.test_jobflow import entry, flow, template
from volcano_py.api import kinds
from volcano_py.api.codec import from_manifest
from volcano_py.api.flow import JobFlow, JobTemplate
from volcano_py.controllers import kopf_thread, kopf_watch, manager
from volcano_py.controllers.kopf_watch import KopfFeed, KopfWatch
from volcano_py.controllers.options import Options
from volcano_py.kube import Client, wire
from volcano_py.kube.credentials import Credentials
from volcano_py.sandbox.cluster import Sandbox

Manifest = dict[str, Any]


def thing(name: str, version: int, uid: str = "u1", kind: str = "JobFlow") -> Manifest:
    metadata = {"name": name, "namespace": "lab", "uid": uid, "resourceVersion": str(version)}
    return {"apiVersion": kinds.JOBFLOW.api_version, "kind": kind, "metadata": metadata}


class Diary:
    """The events of a feed, as text."""

    def __init__(self, feed: KopfFeed[Any]) -> None:
        self.lines: list[str] = []
        note = self.lines.append
        feed.on(
            add=lambda one: note(f"add {one.metadata.name} {one.metadata.uid}"),
            update=lambda old, new: note(f"update {new.metadata.name} {new.metadata.resource_version}"),
            delete=lambda one: note(f"delete {one.metadata.name} {one.metadata.uid}"),
        )


async def test_older_news_are_dropped() -> None:
    feed = KopfFeed(kinds.JOBFLOW, JobFlow)
    diary = Diary(feed)
    feed.seen(thing("f", 5))
    feed.seen(thing("f", 5))
    feed.seen(thing("f", 4))
    feed.seen(thing("f", 7))
    feed.seen(thing("f", 9, uid="u2"))  # deleted and recreated
    feed.seen(thing("f", 8))
    feed.seen(thing("f", 8), gone=True)
    feed.seen(thing("f", 9, uid="u2"), gone=True)
    assert diary.lines == ["add f u1", "update f 7", "delete f u1", "add f u2", "delete f u2"]


def things(*manifests: Manifest) -> list[JobFlow]:
    return [from_manifest(JobFlow, one) for one in manifests]


async def test_a_list_reports_deletions_but_not_of_newer_objects() -> None:
    feed = KopfFeed(kinds.JOBFLOW, JobFlow)
    feed.listed(things(thing("a", 1, "a"), thing("b", 2, "b")), [], "3")
    assert feed.synced.is_set()
    diary = Diary(feed)
    feed.seen(thing("c", 9, "c"))
    feed.listed(things(thing("b", 2, "b")), [], "5")
    assert diary.lines == ["add c c", "delete a a"] and set(feed.store) == {"lab/b", "lab/c"}


async def test_what_cannot_be_read_is_reported_once_and_the_rest_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    feed = KopfFeed(kinds.JOBFLOW, JobFlow)
    bad = {**thing("bad", 1, "x"), "spec": {"flows": "all"}}
    page, rejected = wire.decode_list_lenient(
        json.dumps({"metadata": {"resourceVersion": "3"}, "items": [bad, thing("good", 2, "y")]}).encode(), JobFlow
    )
    for _ in range(2):
        feed.listed(page, rejected, "3")
        feed.seen(bad)
    assert set(feed.store) == {"lab/good"} and caplog.text.count("JobFlow lab/bad") == 1
    feed.listed(page, [], "4")
    feed.seen(bad)
    assert caplog.text.count("JobFlow lab/bad") == 2, "it was gone and has come again"


# ---- with a cluster


@pytest.fixture
async def client(tmp_path: Path):
    async with (
        Sandbox(0, components=(), path=tmp_path / "kubeconfig") as sandbox,
        Client.from_kubeconfig(sandbox.kubeconfig) as made,
    ):
        await made.create(kinds.NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "lab"}})
        yield made


async def until(holds: Any, seconds: float = waiting.budget()) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "did not happen"
        await asyncio.sleep(0.02)


def kopf_threads() -> int:
    return sum(thread.name == "kopf" for thread in threading.enumerate())


async def test_kopf_sees_what_happens_and_leaves_no_trace(client: Client) -> None:
    plain = template("before")
    await client.create(kinds.JOBTEMPLATE, plain)
    watch = KopfWatch(client)
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
    end = time.monotonic() + waiting.budget()
    while names != ["f-a"]:
        assert time.monotonic() < end and not task.done()
        await asyncio.sleep(0.05)
        names = ((await client.get(kinds.JOBTEMPLATE, "a", "lab")).get("status") or {}).get("jobDependsOnList") or []
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    await until(lambda: kopf_threads() == 0)


class Line:
    """A connection to the server that can be cut."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.port = 0

    async def join(self) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        there, back = await asyncio.open_connection("127.0.0.1", self._to)
        try:
            await asyncio.gather(_pump(reader, back), _pump(there, writer))
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()
            back.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


async def test_what_happens_while_the_line_is_cut_is_seen_afterwards(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kopf_watch, "LIST_SECONDS", 0.5)
    line = Line(int(client.credentials.server.rpartition(":")[2]))
    await line.join()
    through = dataclasses.replace(client.credentials, server=f"https://127.0.0.1:{line.port}")
    await client.create(kinds.JOBTEMPLATE, template("stays"))
    await client.create(kinds.JOBTEMPLATE, template("goes"))
    async with Client(through) as cut_off:
        watch = KopfWatch(cut_off)
        feed = watch.feed(kinds.JOBTEMPLATE)
        task = asyncio.create_task(watch.run())
        await feed.synced.wait()
        await asyncio.sleep(0.5)
        await line.cut()
        await client.delete(kinds.JOBTEMPLATE, "goes", "lab")
        await client.create(kinds.JOBTEMPLATE, template("comes"))
        await asyncio.sleep(1)
        assert set(feed.store) == {"lab/stays", "lab/goes"} and not task.done()
        await line.join()
        await until(lambda: set(feed.store) == {"lab/stays", "lab/comes"})
        monkeypatch.setattr(kopf_watch, "LIST_SECONDS", 600.0)
        await asyncio.sleep(0.6)
        await client.patch(kinds.JOBTEMPLATE, "comes", {"spec": {"maxRetry": 9}}, "lab")
        await until(lambda: feed.store["lab/comes"].spec.max_retry == 9)  # kopf itself is back
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    await line.cut()


async def test_kopf_that_ends_is_started_again(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    await client.create(kinds.JOBTEMPLATE, template("one"))
    watch = KopfWatch(client)
    feed = watch.feed(kinds.JOBTEMPLATE)
    task = asyncio.create_task(watch.run())
    await feed.synced.wait()
    await until(lambda: watch.thread is not None)
    first = watch.thread
    assert first is not None
    await first.stop()
    await until(lambda: watch.thread is not first)
    assert "kopf has ended" in caplog.text
    await client.create(kinds.JOBTEMPLATE, template("two"))
    await until(lambda: "lab/two" in feed.store)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_rejected_credentials_are_not_tried_without_a_pause(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kopf requests another session at each 401, more than a hundred times a second."""
    begun: list[float] = []
    make = kopf_thread.session_for

    def session_for(credentials: Credentials) -> Any:
        begun.append(time.monotonic())
        return make(credentials)

    monkeypatch.setattr(kopf_thread, "session_for", session_for)
    monkeypatch.setattr(kopf_thread, "LOGIN_SECONDS", 0.5)
    rejected = dataclasses.replace(client.credentials, headers=lambda: {"Authorization": "Bearer no"})
    thread = kopf_thread.KopfThread(rejected, {kinds.JOBFLOW: KopfFeed(kinds.JOBFLOW, JobFlow)})
    thread.start()
    try:
        await until(lambda: len(begun) >= 3)
    finally:
        await thread.stop()
    assert all(later - earlier >= 0.49 for earlier, later in itertools.pairwise(begun))


async def test_events_wait_in_kopf_while_the_controllers_are_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kopf_thread, "MOST_WAITING", 3)
    feed = KopfFeed(kinds.JOBFLOW, JobFlow)
    thread = kopf_thread.KopfThread(Credentials(server="http://127.0.0.1:1"), {kinds.JOBFLOW: feed})
    handle = thread._handler(feed)
    handed: list[Any] = []
    monkeypatch.setattr(thread, "_hand_over", handed.append)
    events = [{"type": "ADDED", "object": thing(f"f{i}", i + 1, f"u{i}")} for i in range(5)]
    tasks = [asyncio.create_task(handle(one)) for one in events]
    await asyncio.sleep(0.05)
    assert len(handed) == 3
    for work in list(handed):
        work()
    await asyncio.gather(*tasks)
    assert len(handed) == 5 and len(feed.store) == 3
