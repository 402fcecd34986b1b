"""The plugin Remote over real HTTP: responses, failures of every kind at every point, and the example's server."""

from __future__ import annotations

import asyncio
import importlib.util
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from tests import waiting
from tests.scheduler.profiles.trial import Trial
from volcano_py.scheduler.profiles.cluster_events import CallAnswered
from volcano_py.scheduler.profiles.decisions import Ask, BindPod, Decision, EvictPod
from volcano_py.scheduler.profiles.plugin_api.calls import Answer
from volcano_py.scheduler.remote.plugin_requests import PluginRequests

POINTS = ["preEnqueue", "preFilter", "filter", "score", "reserve", "permit", "preBind", "bind"]
ALL = [*POINTS, "postFilter", "unreserve", "postBind"]
EXAMPLE = Path(__file__).parents[3] / "examples" / "remote-plugin"
Reply = Callable[[dict[str, Any]], Any]


class Server:
    """Responds as a test sets: a value is JSON, a Response is itself."""

    def __init__(self) -> None:
        self.called: list[str] = []
        self.replies: dict[str, Reply] = {}
        self.url = ""
        self.never = asyncio.Event()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        question = await request.json()
        self.called.append(f"{question['point']} {question['pod']['metadata']['name']}")
        bad = question["pod"]["metadata"]["name"].startswith("bad")
        reply = self.replies.get(question["point"], lambda q: scores(q)) if bad else scores
        found = reply(question)
        if found is HANG:
            await self.never.wait()
        return found if isinstance(found, web.StreamResponse) else web.json_response(found)


HANG = object()


def scores(question: dict[str, Any]) -> Any:
    return {"scores": dict.fromkeys(question["nodeNames"], 50)} if question["point"] == "score" else {}


class Driver:
    """Executes the scheduler's decisions, with real calls."""

    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        self.open = 0
        self.requests = PluginRequests(frozenset, lambda old, new: None, self._answered)

    def _answered(self, number: str, answer: Answer) -> None:
        self.open -= 1
        self.send(self.trial.scheduler.handle(CallAnswered(number, answer), self.trial.now))

    def send(self, decisions: list[Decision]) -> None:
        self.trial.decided += decisions
        for d in decisions:
            if isinstance(d, Ask):
                self.open += bool(d.number)
                self.requests.send(d)
            elif isinstance(d, BindPod):
                self.send(self.trial.bind([d]))

    def step(self) -> bool:
        while (found := self.trial.scheduler.attempt(self.trial.now)) is not None:
            self.send(found)
        return not self.open

    async def rest(self) -> None:
        """Wait until nothing is in flight."""
        await waiting.until(self._resting, "calls have no response")

    async def _resting(self) -> bool:
        return self.step()


@asynccontextmanager
async def remote(arguments: dict[str, Any] | None = None) -> AsyncIterator[tuple[Server, Driver, Trial]]:
    server = Server()
    app = web.Application()
    app.router.add_post("/{verb}", server.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = site._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]
    given = {
        "urlPrefix": f"http://127.0.0.1:{port}",
        "verbs": {p: p for p in ALL},
        "nodeCacheCapable": True,
        "timeout": "30s",
    }
    first = {"bind": {"enabled": [{"name": "Remote/x"}]}}
    trial = Trial(points=first, arguments={"Remote/x": given | (arguments or {})})
    trial.node("n1")
    trial.node("n2")
    driver = Driver(trial)
    client: Any = None
    task = asyncio.create_task(driver.requests.run(client))
    await asyncio.sleep(0)
    try:
        yield server, driver, trial
    finally:
        server.never.set()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await runner.cleanup()


async def test_each_point_is_called_once() -> None:
    async with remote() as (server, driver, t):
        t.pod("a")
        await driver.rest()
        await waiting.until(lambda: _true("postBind a" in server.called), "postBind is not called")
        assert server.called == [f"{p} a" for p in [*POINTS, "postBind"]]
        assert t.places().keys() == {"a"}
        t.check()


async def _true(value: bool) -> bool:
    return value


FAULTS: dict[str, Reply] = {
    "500": lambda q: web.Response(status=500),
    "hang": lambda q: HANG,
    "garbage": lambda q: web.Response(text="<html>"),
    "no object": lambda q: [1, 2],
    "wrong types": lambda q: {"code": 7},
    "unknown code": lambda q: {"code": "Maybe"},
}
LIES: dict[str, Reply] = {
    "preFilter": lambda q: {"nodeNames": "n1"},
    "filter": lambda q: {"refused": {"n9": {"code": "Unschedulable"}}},
    "score": lambda q: {"scores": {"n1": 1, "n2": 2, "n9": 3}},
    "reserve": lambda q: {"code": "Pending"},
    "permit": lambda q: {"code": "Wait", "timeoutSeconds": "long"},
    "preBind": lambda q: {"reasons": "none"},
    "bind": lambda q: {"code": "Wait"},
}


def limit_of(reply: Reply) -> dict[str, Any]:
    """A short limit for the missing response."""
    return {"timeout": "800ms"} if reply is FAULTS["hang"] else {}


HIGH: Reply = lambda q: {"scores": {"n1": 500, "n2": 1}}  # noqa: E731
CASES = [
    *((p, f"{p}: {name}", reply) for p in POINTS for name, reply in FAULTS.items()),
    *((p, f"{p}: a lie", reply) for p, reply in LIES.items()),
    ("score", "score: too high", HIGH),
]


@pytest.mark.parametrize(("point", "reply"), [(p, r) for p, _, r in CASES], ids=[name for _, name, _ in CASES])
async def test_a_fault_is_an_error_for_the_pod_and_others_go_on(point: str, reply: Reply) -> None:
    async with remote(limit_of(reply)) as (server, driver, t):
        server.replies[point] = reply
        t.pod("bad")
        t.pod("good")
        await driver.rest()
        assert t.places().keys() == {"good"}
        assert 'plugin "Remote/x"' in t.messages()["bad"]
        t.check()
        if point in ("reserve", "permit", "preBind", "bind"):
            await waiting.until(lambda: _true("unreserve bad" in server.called), "the reservation is not undone")


@pytest.mark.parametrize("reply", [*FAULTS.values(), lambda q: {"victims": ["default/missing"], "nominatedNode": "n1"}])
async def test_faults_after_no_node_fits(reply: Reply) -> None:
    async with remote(limit_of(reply)) as (server, driver, t):
        server.replies["postFilter"] = reply
        t.pod("bad", cpu=100)
        t.pod("good")
        await driver.rest()
        assert t.places().keys() == {"good"}
        assert 'PostFilter plugin "Remote/x"' in t.messages()["bad"]
        t.check()


@pytest.mark.parametrize("point", ["unreserve", "postBind"])
async def test_faults_of_notices_change_nothing(point: str) -> None:
    async with remote() as (server, driver, t):
        server.replies[point] = FAULTS["500"]
        server.replies["preBind"] = lambda q: (
            {"code": "Unschedulable", "reasons": ["no"]} if point == "unreserve" else {}
        )
        t.pod("bad")
        await driver.rest()
        await waiting.until(lambda: _true(f"{point} bad" in server.called), "it is not called")
        assert t.places().keys() == ({"bad"} if point == "postBind" else set())
        t.check()


@pytest.mark.parametrize("point", POINTS)
async def test_a_failing_ignorable_program_abstains(point: str) -> None:
    async with remote({"ignorable": True}) as (server, driver, t):
        server.replies[point] = FAULTS["500"]
        t.pod("bad")
        await driver.rest()
        assert t.places().keys() == {"bad"}
        t.check()


async def test_responses_decide() -> None:
    async with remote() as (server, driver, t):
        server.replies["filter"] = lambda q: {
            "refused": {"n1": {"code": "Unschedulable", "reasons": ["node(s) were late"]}}
        }
        t.pod("bad-1", cpu=3)
        await driver.rest()
        assert t.places() == {"bad-1": "n2"}
        server.replies["permit"] = lambda q: {"code": "Wait", "timeoutSeconds": 5}
        server.replies["filter"] = lambda q: {}
        t.pod("bad-3", cpu=1)
        await driver.rest()
        assert [w.pod.name for w in t.scheduler.waiting_pods()] == ["bad-3"]
        driver.send(t.tick(5))
        assert t.messages()["bad-3"].startswith("rejected due to timeout")
        t.check()


async def test_victims_of_the_program_are_evicted() -> None:
    async with remote() as (server, driver, t):
        t.pod("good", cpu=4, node="n1")
        server.replies["postFilter"] = lambda q: {"nominatedNode": "n1", "victims": ["default/good"]}
        server.replies["filter"] = lambda q: {}
        t.node("n2", cpu=1)
        t.pod("bad", cpu=3)
        await driver.rest()
        assert any(isinstance(d, EvictPod) and d.pod.name == "good" for d in t.decided)


async def test_calls_are_sent_only_for_managed_resources() -> None:
    async with remote({"managedResources": ["example.com/x"]}) as (server, driver, t):
        t.pod("a")
        await driver.rest()
        assert (server.called, t.places().keys()) == ([], {"a"})


async def test_the_example_spreads_an_app() -> None:
    spec = importlib.util.spec_from_file_location("remote_plugin_server", EXAMPLE / "server.py")
    assert spec is not None and spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    assert len((EXAMPLE / "server.py").read_text().splitlines()) <= 55
    profile = yaml.safe_load((EXAMPLE / "scheduler.conf").read_text())["profiles"][0]
    arguments = profile["pluginConfig"][0]["args"]
    async with remote({"verbs": arguments["verbs"]}) as (server, driver, t):
        server.replies = {p: (lambda q, p=p: json.loads(json.dumps(example.answer(p, q)))) for p in ALL}
        for i in range(5):
            t.pod(f"bad-{i}", labels={"app": "web"})
        for _ in range(12):  # conflicts of two pods are resolved at Reserve, and retried
            await driver.rest()
            driver.send(t.tick())
        assert sorted(t.places().values()) == ["n1", "n1", "n2", "n2"]
        assert "2 node(s) had 2 pods of the app" in "".join(t.messages().values())
        t.check()
