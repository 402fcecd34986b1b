"""Random writers, watchers and restarts: what a watcher has replayed is what a list at that version says."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import aiohttp
import pytest
from hypothesis import HealthCheck, event, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests import waiting
from tests.sandbox.clients import Http, http
from volcano_py.sandbox.apiserver.storage import durable
from volcano_py.sandbox.cluster import Sandbox

NAMESPACES = ("default", "kube-public")
NAMES = ("a", "b", "c")
LABELS = ("x", "y", "")
KEPT_REVISIONS = 25  # so few that some watches resume after a restart, and some have to list again
SECONDS = waiting.budget()

everywhere = "/api/v1/configmaps"
SELECTIONS: tuple[tuple[str, dict[str, str]], ...] = (
    (everywhere, {}),
    ("/api/v1/namespaces/default/configmaps", {}),
    (everywhere, {"labelSelector": "l=x"}),
    (everywhere, {"labelSelector": "l!=x"}),
    (everywhere, {"labelSelector": "l in (x,y)"}),
    (everywhere, {"fieldSelector": "metadata.name=a"}),
    ("/api/v1/namespaces/kube-public/configmaps", {"labelSelector": "!l", "fieldSelector": "metadata.name!=b"}),
)

State = dict[str, str]  # namespace/name to resourceVersion

operations = st.tuples(
    st.sampled_from(("create", "label", "data", "delete")),
    st.sampled_from(NAMESPACES),
    st.sampled_from(NAMES),
    st.sampled_from(LABELS),
)


def key_of(obj: dict[str, Any]) -> str:
    return f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"


def version_of(obj: dict[str, Any]) -> int:
    return int(obj["metadata"]["resourceVersion"])


class Replay:
    """A client that keeps a copy of a selection by its watch, as an informer does."""

    def __init__(self, path: str, selector: dict[str, str], by_list: bool) -> None:
        self.path, self.selector, self.by_list = path, selector, by_list
        self.state: State = {}
        self.version = 0
        self.past: list[tuple[int, State]] = []  # the state after each event since the last list

    def url(self, **more: str) -> str:
        return f"{self.path}?{urlencode({**self.selector, **more})}"

    async def run(self, api: Http) -> None:
        """List unless there is something to go on from, then watch."""
        with contextlib.suppress(aiohttp.ClientError):
            while True:
                if not self.past and self.by_list:
                    listed = await api.ok("GET", self.url())
                    self.state = {key_of(item): item["metadata"]["resourceVersion"] for item in listed["items"]}
                    self._saw(version_of(listed))
                await self._watch(api)

    async def _watch(self, api: Http) -> None:
        more = {"watch": "true", "allowWatchBookmarks": "true", "resourceVersion": str(self.version)}
        initial = not self.past
        if initial:  # by the list that a watch begins with
            self.state, self.version = {}, 0
            more |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "resourceVersion": ""}
        async with api.stream(self.url(**more)) as lines:
            async for line in lines:
                if line["type"] == "ERROR":
                    assert line["object"]["code"] == 410, line
                    event("a watch had to list again")
                    self.past = []
                    return
                obj, version = line["object"], version_of(line["object"])
                if line["type"] == "BOOKMARK":
                    initial = False
                    self._saw(version)
                    continue
                assert initial or version > self.version, f"{line} after {self.version}"
                before = self.state.get(key_of(obj))
                if line["type"] == "ADDED":
                    assert before is None, line
                else:
                    assert before is not None, line
                self.state = {**self.state, key_of(obj): str(version)}
                if line["type"] == "DELETED":
                    del self.state[key_of(obj)]
                if not initial:
                    self._saw(version)

    def _saw(self, version: int) -> None:
        assert version >= self.version
        self.version = version
        self.past.append((version, self.state))


class Cluster(RuleBasedStateMachine):
    """One cluster with its data folder."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = Path(tempfile.mkdtemp(prefix="sandbox-state-"))
        self.stack = contextlib.AsyncExitStack()
        self.replays: list[Replay] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.version = 0
        self.acknowledged: dict[str, int | None] = {}  # by key, the last version; None: deleted

    def wait(self, coroutine: Any) -> Any:
        return self.loop.run_until_complete(waiting.within(coroutine, "a step has not ended", 2))

    async def _up(self) -> None:
        options = {"nodes": 0, "crds": False, "hollow": False, "controllers": None}
        sandbox = await self.stack.enter_async_context(Sandbox(**options, data=self.folder))  # type: ignore[arg-type]
        self.api = await self.stack.enter_async_context(http(sandbox))
        assert sandbox.api.store.revision >= self.version
        self.tasks = [asyncio.create_task(replay.run(self.api)) for replay in self.replays]

    async def _down(self) -> None:
        for task in self.tasks:
            task.cancel()
        for outcome in await asyncio.gather(*self.tasks, return_exceptions=True):
            assert outcome is None or isinstance(outcome, asyncio.CancelledError), outcome
        self.tasks = []
        await self.stack.aclose()

    @initialize()
    def start(self) -> None:
        self.wait(self._up())

    def teardown(self) -> None:
        self.wait(self._down())
        self.loop.close()
        shutil.rmtree(self.folder)

    # --- what may happen ---------------------------------------------------------------------------------------------

    @rule(index=st.sampled_from(range(len(SELECTIONS))), by_list=st.booleans())
    @precondition(lambda self: len(self.replays) < 6)
    def watch(self, index: int, by_list: bool) -> None:
        async def begin() -> None:
            replay = Replay(*SELECTIONS[index], by_list)
            self.replays.append(replay)
            self.tasks.append(asyncio.create_task(replay.run(self.api)))

        self.wait(begin())

    @rule(writers=st.lists(st.lists(operations, max_size=6), min_size=1, max_size=4))
    def write(self, writers: list[list[tuple[str, str, str, str]]]) -> None:
        async def lanes() -> None:
            await asyncio.gather(*(self._lane(rows) for rows in writers))

        self.wait(lanes())

    async def _lane(self, rows: list[tuple[str, str, str, str]]) -> None:
        for verb, namespace, name, label in rows:
            path = f"/api/v1/namespaces/{namespace}/configmaps"
            labels = {"l": label} if label else {}
            if verb == "create":
                status, answer = await self.api.call("POST", path, {"metadata": {"name": name, "labels": labels}})
            elif verb == "delete":
                status, answer = await self.api.call("DELETE", f"{path}/{name}")
            else:
                change = {"metadata": {"labels": {"l": label or None}}} if verb == "label" else {"data": {"d": label}}
                merge = "application/merge-patch+json"
                status, answer = await self.api.call("PATCH", f"{path}/{name}", change, merge)
            assert status in (200, 201, 404, 409), answer
            if status < 300:
                self._acknowledge(f"{namespace}/{name}", verb, answer)

    def _acknowledge(self, key: str, verb: str, answer: dict[str, Any]) -> None:
        """The other lanes may have been answered out of order; versions show which was last."""
        if verb == "delete":
            self.acknowledged[key] = None
        elif (known := self.acknowledged.get(key)) is not None:
            self.acknowledged[key] = max(known, version_of(answer))
        else:
            self.acknowledged[key] = version_of(answer)

    @rule(data=st.data())
    @precondition(lambda self: self.replays)
    def leave(self, data: st.DataObject) -> None:
        """A watcher loses its connection; it goes on from where it was when it is back."""
        index = data.draw(st.sampled_from(range(len(self.replays))))

        async def cut() -> None:
            self.tasks[index].cancel()
            await asyncio.wait([self.tasks[index]])

        self.wait(cut())

    @rule()
    def come_back(self) -> None:
        async def connect() -> None:
            for index, task in enumerate(self.tasks):
                if task.cancelled():
                    self.tasks[index] = asyncio.create_task(self.replays[index].run(self.api))

        self.wait(connect())

    @rule()
    @precondition(lambda self: self.replays)
    def restart(self) -> None:
        async def again() -> None:
            await self._down()
            await self._up()

        self.wait(again())

    # --- what must hold ----------------------------------------------------------------------------------------------

    @invariant()
    def agree(self) -> None:
        if hasattr(self, "api"):
            self.wait(self._agree())

    async def _agree(self) -> None:
        listed = await self.api.ok("GET", everywhere)
        assert version_of(listed) >= self.version
        self.version = version_of(listed)
        there = {key_of(item): version_of(item) for item in listed["items"]}
        for key, version in self.acknowledged.items():
            if version is not None and there.get(key, 0) < version:
                # only a deletion in another lane may have come after it
                assert key not in there, f"{key} at {version} was acknowledged; there is {there}"
        for replay, task in zip(self.replays, self.tasks, strict=True):
            if task.cancelled():
                continue
            await self._caught_up(replay, task)
            await self._agree_at(replay, replay.past[len(replay.past) // 2][0])

    async def _caught_up(self, replay: Replay, task: asyncio.Task[None]) -> None:
        now = await self.api.ok("GET", replay.url())
        wanted = {key_of(item): item["metadata"]["resourceVersion"] for item in now["items"]}
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SECONDS):
                while not replay.past or replay.state != wanted:
                    if task.done():
                        await task
                    await asyncio.sleep(0.002)
        assert replay.past and replay.state == wanted, f"{replay.url()}: {replay.state}, listed: {wanted}"

    async def _agree_at(self, replay: Replay, version: int) -> None:
        """The list at an earlier version is the state that the watch gave us for it."""
        path = replay.url(resourceVersion=str(version), resourceVersionMatch="Exact")
        status, answer = await self.api.call("GET", path)
        if status == 410:
            assert version < self.api.sandbox.api.store.collections["configmaps"].floor
            return
        assert status == 200, answer
        then = {key_of(item): item["metadata"]["resourceVersion"] for item in answer["items"]}
        seen = [state for at, state in replay.past if at <= version][-1]
        assert then == seen, f"{path}: {json.dumps(answer)}, replayed: {seen}"


def run(examples: int, steps: int) -> None:
    checks = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
    chosen = settings(max_examples=examples, stateful_step_count=steps, deadline=None, suppress_health_check=checks)
    run_state_machine_as_test(Cluster, settings=chosen)


@pytest.fixture(autouse=True)
def few_revisions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durable, "KEPT_REVISIONS", KEPT_REVISIONS)


def test_watchers_and_lists_agree() -> None:
    run(examples=8, steps=15)


@pytest.mark.slow
def test_watchers_and_lists_agree_for_long() -> None:
    run(examples=60, steps=30)
