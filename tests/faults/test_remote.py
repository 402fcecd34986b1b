"""Extenders and metrics sources in a process of their own that hang, break, flood or lie: calls end in time, and the
scheduler goes on as it is configured."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.waiting import budget, limit, within
from volcano_py.scheduler.plugins.extender.mailbox import MOST_NOTICES, ExtenderRequest, Mailbox
from volcano_py.scheduler.remote.extender_calls import ExtenderCalls
from volcano_py.scheduler.remote.http import CallError, call
from volcano_py.scheduler.remote.usage_source import measure
from volcano_py.testing import Cluster, Decision

BAD = ("status500", "huge", "invalid", "hang", "reset")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The URL of the server."""
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("remote_server.py"))], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.kill()
        process.wait()


def two_nodes() -> Cluster:
    cluster = Cluster()
    cluster.add_node("a", cpu=4)
    cluster.add_node("b", cpu=4)
    cluster.add_job("g", cpu=1)
    return cluster


def schedule(cluster: Cluster, url: str, **arguments: Any) -> Decision:
    settings = {
        "extender.urlPrefix": url,
        "extender.httpTimeout": "300ms" if url.endswith("/hang") else "60s",
        "extender.predicateVerb": "predicate",
        "extender.prioritizeVerb": "prioritize",
        **arguments,
    }
    return cluster.schedule(tiers=[["priority", "gang"], ["predicates", {"extender": settings}]])


async def carried(cluster: Cluster) -> Mailbox:
    """Carry the questions of the last cycle, and return the mailbox with the answers."""
    mail = cluster._simulation.cluster.keep(Mailbox)
    answered = asyncio.Event()
    calls = ExtenderCalls(lambda: mail, answered.set)
    task = asyncio.create_task(calls.run())
    calls.wake()
    await within(answered.wait(), "the calls did not end")
    task.cancel()
    return mail


async def test_an_extender_decides(server: str) -> None:
    cluster = two_nodes()
    assert not schedule(cluster, f"{server}/good").bound
    mail = await carried(cluster)
    assert not any(answer.error for answer in mail.answers.values())
    assert schedule(cluster, f"{server}/good").bound


@pytest.mark.parametrize("how", BAD)
@pytest.mark.parametrize("ignorable", [True, False])
async def test_a_bad_extender_is_ignored_or_rejects(server: str, how: str, ignorable: bool) -> None:
    cluster = two_nodes()
    url = f"{server}/{how}"
    assert not schedule(cluster, url, **{"extender.ignorable": ignorable}).bound
    mail = await carried(cluster)
    assert all(answer.error for answer in mail.answers.values())
    decision = schedule(cluster, url, **{"extender.ignorable": ignorable})
    assert bool(decision.bound) is ignorable
    assert ignorable or "the extender failed" in decision.pending["g"]


async def test_lies_are_no_answers(server: str) -> None:
    cluster = two_nodes()
    schedule(cluster, f"{server}/lies")
    await carried(cluster)
    decision = schedule(cluster, f"{server}/lies")
    assert not decision.bound
    assert "no valid response" in decision.pending["g"]
    assert not decision.faults


async def test_a_program_that_hangs_does_not_delay_other_questions(server: str) -> None:
    cluster = Cluster()
    for i in range(100):
        cluster.add_node(f"n{i}", cpu=4)
    cluster.add_job("g", cpu=1)
    schedule(cluster, f"{server}/hang")
    begun = time.monotonic()
    mail = await carried(cluster)
    assert len(mail.answers) >= 100
    assert time.monotonic() - begun < 100 * 0.3, "the calls followed each other"


async def test_notices_to_a_program_that_hangs_do_not_delay_questions(server: str) -> None:
    cluster = two_nodes()
    schedule(cluster, f"{server}/hang", **{"extender.allocateFuncVerb": "allocated"})
    mail = cluster._simulation.cluster.keep(Mailbox)
    notice = ExtenderRequest(f"{server}/hang/allocated", dict, 0.3)
    mail.notices.extend([notice] * 2 * MOST_NOTICES)
    assert len(mail.notices) == MOST_NOTICES
    calls: list[float] = []

    async def counted(*args: Any, **kwargs: Any) -> bytes:
        calls.append(time.monotonic())
        return await call(*args, **kwargs)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("volcano_py.scheduler.remote.extender_calls.call", counted)
        await carried(cluster)
    assert len(calls) < 50, "a program that has just failed gets no notices"


# ---- Prometheus -----------------------------------------------------------------------------------------------------


async def measured(url: str, nodes: list[str]) -> tuple[dict[str, Any], str]:
    async with aiohttp.ClientSession() as session, limit("the measurement did not end"):
        return await measure(session, None, {"type": "prometheus", "address": url}, nodes)  # type: ignore[arg-type]


async def test_prometheus_measures_each_node(server: str) -> None:
    found, problem = await measured(f"{server}/good", ["busy", "idle"])
    assert {node: (usage.cpu, usage.memory) for node, usage in found.items()} == {"busy": (90, 10), "idle": (10, 10)}
    assert not problem


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("status500", "status 500"),
        ("huge", "larger than 10 MiB"),
        ("invalid", "not valid JSON"),
        ("hang", "no response within"),
        ("reset", "Disconnected"),
        ("lies", "not a percentage"),
    ],
)
async def test_a_bad_source_measures_nothing(
    server: str, how: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("volcano_py.scheduler.remote.usage_source._TIMEOUT", 0.5 if how == "hang" else budget())
    found, problem = await measured(f"{server}/{how}", [f"n{i}" for i in range(40)])
    assert not found
    assert words in problem


async def test_after_a_timeout_no_further_calls_are_started(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    started = 0

    async def counted(*args: Any, **kwargs: Any) -> bytes:
        nonlocal started
        started += 1
        return await call(*args, **kwargs)

    monkeypatch.setattr("volcano_py.scheduler.remote.usage_source.call", counted)
    monkeypatch.setattr("volcano_py.scheduler.remote.usage_source._TIMEOUT", 0.2)
    await measured(f"{server}/hang", [f"n{i}" for i in range(100)])
    assert 0 < started < 50, "only the calls that ran side by side with the first one"


@pytest.mark.parametrize(
    "settings", [{"type": "graphite"}, {"type": "prometheus"}, {"type": "elasticsearch", "address": "es:9200"}]
)
async def test_settings_that_cannot_be_used_are_an_error(settings: dict[str, str]) -> None:
    async with aiohttp.ClientSession() as session:
        with pytest.raises(CallError):
            await measure(session, None, settings, ["n"])  # type: ignore[arg-type]
