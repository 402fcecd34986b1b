"""What --data keeps: restarts, compaction, damage, a disk that is full, and fifty kills."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests import waiting
from tests.sandbox.clients import CONFIGMAPS, MERGE, http
from volcano_py.kube.client import Client
from volcano_py.kube.errors import KubeError
from volcano_py.sandbox.apiserver.storage import database, durable
from volcano_py.sandbox.apiserver.storage.database import FILE, Database
from volcano_py.sandbox.cluster import Sandbox, SandboxError

WIDGETS = "/apis/example.com/v1/widgets"
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Cluster",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"size": {"type": "integer"}},
                    }
                },
                "selectableFields": [{"jsonPath": ".size"}],
            }
        ],
    },
}


def kept(folder: Path, **options: Any) -> Sandbox:
    """A small cluster that keeps its objects."""
    return Sandbox(**{"nodes": 1, "crds": False, "controllers": None, "data": folder, **options})


def configmap(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


async def test_a_restart_brings_everything_back(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with kept(data) as sandbox, http(sandbox) as api:
        await api.ok("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD)
        await asyncio.sleep(0.05)
        widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "size": 3}
        await api.ok("POST", WIDGETS, widget)
        await api.ok("POST", CONFIGMAPS, configmap("kept", a="1"))
        await api.ok("POST", CONFIGMAPS, configmap("gone"))
        await api.ok("DELETE", CONFIGMAPS + "/gone")
        await api.ok("DELETE", "/api/v1/nodes/node-0")
        accounts = "/api/v1/namespaces/default/serviceaccounts"
        await api.ok("POST", accounts, {"metadata": {"name": "robot"}})
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        issued = (await api.ok("POST", accounts + "/robot/token", request))["status"]["token"]
        before = (await api.ok("GET", CONFIGMAPS))["items"]
        url, token, authority, revision = sandbox.url, sandbox.token, sandbox.authority, sandbox.api.store.revision
    assert (data / FILE).stat().st_mode & 0o777 == 0o600
    async with kept(data) as sandbox, http(sandbox) as api:
        assert (sandbox.url, sandbox.token, sandbox.authority) == (url, token, authority)
        assert sandbox.api.store.revision >= revision
        assert (await api.ok("GET", CONFIGMAPS))["items"] == before
        found = await api.ok("GET", WIDGETS + "?fieldSelector=size%3D3")
        assert [item["metadata"]["name"] for item in found["items"]] == ["w"]
        assert (await api.ok("GET", "/api/v1/nodes"))["items"] == []  # the cluster's own nodes, not --nodes again
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        status, answer = await api.call(
            "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review, token=issued
        )
        assert status == 201
        assert answer["status"]["userInfo"]["username"] == "system:serviceaccount:default:robot"
        await api.ok("DELETE", accounts + "/robot")
        assert (await api.call("GET", CONFIGMAPS, token=issued))[0] == 401


async def watched(sandbox: Sandbox, path: str, seconds: float = 0.3) -> list[dict[str, Any]]:
    """The events of a watch that nothing happens to for a while."""
    out: list[dict[str, Any]] = []
    async with http(sandbox) as api:
        headers = {"Authorization": f"Bearer {sandbox.token}"}
        async with api.session.get(sandbox.url + path, headers=headers) as answer:
            try:
                while True:
                    line = await asyncio.wait_for(answer.content.readline(), seconds)
                    if not line:
                        break
                    out.append(json.loads(line))
            except TimeoutError:
                pass
    return out


async def test_a_watch_goes_on_after_a_restart(tmp_path: Path) -> None:
    async with kept(tmp_path) as sandbox, http(sandbox) as api:
        body = {**configmap("a", n="0"), "metadata": {"name": "a", "labels": {"in": "yes"}}}
        start = (await api.ok("POST", CONFIGMAPS, body))["metadata"]["resourceVersion"]
        await api.ok("PATCH", CONFIGMAPS + "/a", {"metadata": {"labels": {"in": None}}}, MERGE)
        await api.ok("POST", CONFIGMAPS, configmap("b"))
        await api.ok("DELETE", CONFIGMAPS + "/b")
        watch = f"{CONFIGMAPS}?watch=true&resourceVersion={start}"
        before = [await watched(sandbox, watch), await watched(sandbox, watch + "&labelSelector=in")]
    assert [event["type"] for event in before[0]] == ["MODIFIED", "ADDED", "DELETED"]
    assert [event["type"] for event in before[1]] == ["DELETED"]
    async with kept(tmp_path) as sandbox:
        assert [await watched(sandbox, watch), await watched(sandbox, watch + "&labelSelector=in")] == before


async def test_unused_revisions_are_compacted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durable, "KEPT_REVISIONS", 30)
    async with kept(tmp_path, nodes=0, hollow=False) as sandbox, http(sandbox) as api:
        created = await api.ok("POST", CONFIGMAPS, configmap("a", n="0"))
        for number in range(100):
            changed = await api.ok("PATCH", CONFIGMAPS + "/a", {"data": {"n": str(number)}}, MERGE)
            if number % 10 == 0:
                await api.ok("POST", CONFIGMAPS, configmap("b"))
                await api.ok("DELETE", CONFIGMAPS + "/b")
        objects = sum(len(collection.entries) for collection in sandbox.api.store.collections.values())
    with sqlite3.connect(tmp_path / FILE) as connection:
        (rows,) = connection.execute("SELECT count(*) FROM writes").fetchone()
    assert rows <= objects + 40
    async with kept(tmp_path) as sandbox, http(sandbox) as api:
        items = (await api.ok("GET", CONFIGMAPS))["items"]
        assert [(item["metadata"]["name"], item["data"]) for item in items] == [("a", {"n": "99"})]
        old, last = (value["metadata"]["resourceVersion"] for value in (created, changed))
        (event,) = await watched(sandbox, f"{CONFIGMAPS}?watch=true&resourceVersion={old}")
        assert event["type"] == "ERROR" and event["object"]["code"] == 410
        assert len(await watched(sandbox, f"{CONFIGMAPS}?watch=true&resourceVersion={int(last) - 20}")) == 20
        assert await watched(sandbox, f"{CONFIGMAPS}?watch=true&resourceVersion={last}") == []


@pytest.mark.parametrize("fsync", [False, True])
async def test_the_log_is_reset_while_others_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fsync: bool
) -> None:
    """Every checkpoint of a log that is too large pauses the writes before another commit begins, and the next commit
    starts a new log."""
    monkeypatch.setattr(durable, "CHECKPOINT_BYTES", 100_000)
    monkeypatch.setattr(durable, "LOG_LIMIT", 0)
    monkeypatch.setattr(database, "CHECKED_LOG", 100_000)
    steps: list[str] = []
    sizes: list[int] = []

    def recorded(name: str) -> None:
        method = getattr(durable.Durable, name)

        def step(kept: durable.Durable, argument: Any = None) -> None:
            steps.append(name)
            if name == "_write" and steps[-3:-1] == ["_caught_up", "_write"]:
                sizes.append(kept.database.log_bytes())  # one commit after the pause
            method(kept, *([] if argument is None else [argument]))

        monkeypatch.setattr(durable.Durable, name, step)

    for name in ("_write", "_checkpointed", "_pause", "_caught_up"):
        recorded(name)
    # as on a busy disk: with fsync, a commit is running when a checkpoint ends
    commit, checkpoint = Database.commit, Database.checkpoint
    monkeypatch.setattr(Database, "commit", lambda database: (time.sleep(0.02 * fsync), commit(database)))
    monkeypatch.setattr(Database, "checkpoint", lambda database: (checkpoint(database), time.sleep(0.03)))
    created = 0
    async with kept(tmp_path, hollow=False, fsync=fsync) as sandbox, http(sandbox) as api:

        async def lane(lane: int) -> None:
            nonlocal created
            number = 0
            while len(sizes) < 5:
                await api.ok("POST", CONFIGMAPS, configmap(f"c-{lane}-{number}", text="x" * 5000))
                number, created = number + 1, created + 1

        async with waiting.limit("the log is not reset five times"):
            await asyncio.gather(*(lane(number) for number in range(8)))
    after = {following for step, following in itertools.pairwise(steps) if step == "_checkpointed"}
    assert after == {"_pause"}, steps
    assert max(sizes) < 500_000  # a commit contains at most the write of each lane
    async with kept(tmp_path, hollow=False) as sandbox, http(sandbox) as api:
        assert len((await api.ok("GET", CONFIGMAPS))["items"]) == created


async def test_no_answer_before_the_write_is_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()
    gate.set()
    commit = Database.commit

    def gated(database: Database) -> None:
        gate.wait(10)
        commit(database)

    monkeypatch.setattr(Database, "commit", gated)
    async with kept(tmp_path, hollow=False, fsync=True) as sandbox, http(sandbox) as api:
        revision = sandbox.api.store.revision
        watch = asyncio.create_task(watched(sandbox, f"{CONFIGMAPS}?watch=true&resourceVersion={revision}", 1.0))
        await asyncio.sleep(0.1)
        gate.clear()
        create = asyncio.create_task(api.ok("POST", CONFIGMAPS, configmap("a")))
        await asyncio.sleep(0.1)
        read = asyncio.create_task(api.call("GET", CONFIGMAPS + "/a"))
        again = asyncio.create_task(api.call("POST", CONFIGMAPS, configmap("a")))
        done, _ = await asyncio.wait([create, read, again], timeout=0.3)
        assert not done
        with sqlite3.connect(tmp_path / FILE) as other:
            assert other.execute("SELECT count(*) FROM writes WHERE key = 'default/a'").fetchone() == (0,)
        gate.set()
        await create
        assert (await read)[0] == 200 and (await again)[0] == 409
        assert [event["type"] for event in await watch] == ["ADDED"]


async def test_a_full_disk_ends_acknowledging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with kept(tmp_path, hollow=False) as sandbox, http(sandbox) as api:
        await api.ok("POST", CONFIGMAPS, configmap("before"))

        def full(database: Database, rows: Any) -> None:
            raise sqlite3.OperationalError("database or disk is full")

        monkeypatch.setattr(Database, "add", full)
        status, answer = await api.call("POST", CONFIGMAPS, configmap("after"))
        assert status == 500 and "disk is full" in answer["message"] and str(tmp_path) in answer["message"]
        assert (await api.call("GET", CONFIGMAPS + "/after"))[0] == 500
        assert sandbox.durable is not None and "free disk space" in sandbox.durable.failure
    monkeypatch.undo()
    async with kept(tmp_path) as sandbox, http(sandbox) as api:
        assert [item["metadata"]["name"] for item in (await api.ok("GET", CONFIGMAPS))["items"]] == ["before"]


async def test_a_folder_is_for_one_sandbox(tmp_path: Path) -> None:
    async with kept(tmp_path):
        with pytest.raises(SandboxError, match=r"in use by a sandbox \(pid \d+\).*--data") as raised:
            async with kept(tmp_path):
                pass
        assert "\n" not in str(raised.value)
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(SandboxError, match="choose another folder"):
        async with kept(blocked):
            pass


def change(folder: Path, statement: str, *values: Any) -> None:
    connection = sqlite3.connect(folder / FILE)
    with connection:
        assert connection.execute(statement, values).rowcount > 0
    connection.close()


async def test_damage_is_named(tmp_path: Path) -> None:
    async with kept(tmp_path) as sandbox, http(sandbox) as api:
        for name in "abc":
            await api.ok("POST", CONFIGMAPS, configmap(name))
        last = sandbox.api.store.revision
    whole = (tmp_path / FILE).read_bytes()

    async def rejected() -> str:
        with pytest.raises(SandboxError) as raised:
            async with kept(tmp_path):
                pass
        text = str(raised.value)
        assert "\n" not in text and "sandbox dump --data" in text and "sandbox load" in text
        return text

    change(tmp_path, "UPDATE writes SET tail = replace(tail, 'uid', 'UID') WHERE key = 'default/b'")
    assert "configmaps default/b at revision" in await rejected()
    (tmp_path / FILE).write_bytes(whole)
    change(tmp_path, "DELETE FROM writes WHERE revision = ?", last - 1)
    assert f"revision {last - 1} is missing" in await rejected()
    (tmp_path / FILE).write_bytes(whole)
    change(tmp_path, "UPDATE facts SET value = replace(value, 'token', 'tokem') WHERE name = 'identity'")
    assert "'identity'" in await rejected()
    (tmp_path / FILE).write_bytes(b"nonsense" * 4096)
    assert "not a database" in await rejected()
    (tmp_path / FILE).write_bytes(whole[: len(whole) // 2])
    assert "malformed" in await rejected()
    (tmp_path / FILE).write_bytes(whole)
    async with kept(tmp_path) as sandbox, http(sandbox) as api:
        assert len((await api.ok("GET", CONFIGMAPS))["items"]) == 3


# --- fifty kills -----------------------------------------------------------------------------------------------------

KILLS = 50
LANES = 8


@dataclass
class Known:
    """What was acknowledged of an object (None: it is not there), and what was asked for and not answered yet."""

    value: str | None = None
    asked: list[str | None] = field(default_factory=list)


class Writers:
    """Random creations, changes and deletions; each lane has its own objects."""

    def __init__(self, seed: int, known: dict[str, Known]) -> None:
        self.random = random.Random(seed)
        self.known = known
        self.acknowledged = 0
        self.revision = 0

    def acknowledges_after(self, revision: int) -> Callable[[], Awaitable[bool]]:
        """A condition to wait for: a write after that revision was acknowledged."""

        async def acknowledged() -> bool:
            return self.revision > revision

        return acknowledged

    async def lane(self, client: Client, number: int) -> None:
        while True:
            name = f"c-{number}-{self.random.randrange(6)}"
            known = self.known.setdefault(name, Known())
            value = None if known.value is not None and self.random.random() < 0.3 else str(self.random.random())
            known.asked = [value]
            if value is None:
                answer = await client.raw("DELETE", f"{CONFIGMAPS}/{name}")
            elif known.value is None:
                answer = await client.raw("POST", CONFIGMAPS, body=json.dumps(configmap(name, v=value)).encode())
            else:
                body = json.dumps(configmap(name, v=value)).encode()
                answer = await client.raw("PUT", f"{CONFIGMAPS}/{name}", body=body)
            known.value, known.asked = value, []
            self.acknowledged += 1
            if value is not None:
                self.revision = max(self.revision, int(json.loads(answer)["metadata"]["resourceVersion"]))


async def server(data: Path, kubeconfig: Path, *more: str) -> asyncio.subprocess.Process:
    """A sandbox in a process of its own that answers."""
    arguments = ("--nodes", "0", "--components", "none", "--data", str(data), "--kubeconfig", str(kubeconfig), *more)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "volcano_py.cli.main", "sandbox", "up", *arguments, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    assert b"The sandbox is" in await waiting.within(process.stdout.readline(), "the sandbox is not up")
    return process


async def compare(client: Client, known: dict[str, Known], revision: int) -> None:
    """Everything acknowledged is there, everything else was at least requested."""
    listed = json.loads(await client.raw("GET", CONFIGMAPS))
    assert int(listed["metadata"]["resourceVersion"]) >= revision
    # every namespace has one of the server's own, too
    there = {item["metadata"]["name"]: item["data"]["v"] for item in listed["items"] if "v" in item["data"]}
    assert there.keys() <= known.keys()
    for name, expected in known.items():
        assert there.get(name) in [expected.value, *expected.asked], f"{name}: {expected}, found {there.get(name)}"
        expected.value, expected.asked = there.get(name), []


@pytest.mark.slow
async def test_nothing_acknowledged_is_lost_under_fifty_kills(tmp_path: Path) -> None:
    known: dict[str, Known] = {}
    acknowledged, revision = 0, 0
    for seed in range(KILLS):
        process = await server(tmp_path / "data", tmp_path / "kubeconfig", *(["--fsync"] if seed % 2 else []))
        try:
            async with Client.from_kubeconfig(tmp_path / "kubeconfig", retries=0, timeout=5) as client:
                await compare(client, known, revision)
                writers = Writers(seed, known)
                lanes = [asyncio.create_task(writers.lane(client, number)) for number in range(LANES)]
                # The first answer of a new server may take longer than the pause on a slow machine.
                await waiting.until(writers.acknowledges_after(revision), "no write was acknowledged")
                await asyncio.sleep(writers.random.uniform(0.0, 0.3))
                process.send_signal(signal.SIGKILL)
                await process.wait()
                for ended in await asyncio.gather(*lanes, return_exceptions=True):
                    assert isinstance(ended, KubeError | aiohttp.ClientError | OSError), ended
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        acknowledged += writers.acknowledged
        assert writers.revision > revision
        revision = writers.revision
    print(f"{acknowledged} acknowledged writes, {KILLS} kills")
    assert acknowledged > KILLS * LANES
    process = await server(tmp_path / "data", tmp_path / "kubeconfig")
    try:
        async with Client.from_kubeconfig(tmp_path / "kubeconfig") as client:
            await compare(client, known, revision)
    finally:
        process.terminate()
        await process.wait()
