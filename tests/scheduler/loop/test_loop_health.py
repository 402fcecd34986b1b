"""/healthz of a running scheduler: conditions that fail it, and conditions that do not."""

from __future__ import annotations

import asyncio
import os
import signal
import ssl
import time
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.faults.scheduling import cluster, launched, running, until
from tests.waiting import budget
from volcano_py.api.kinds import NODESHARD
from volcano_py.kube import certificates
from volcano_py.scheduler.runtime.process import serve
from volcano_py.scheduler.runtime.server import Scheduler

SERVED = {"enable_healthz": True, "healthz_address": "127.0.0.1:0"}


async def healthz(scheduler: Scheduler, query: str = "") -> tuple[int, str]:
    url = f"http://127.0.0.1:{scheduler.ports['healthz']}/healthz{query}"
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return answer.status, await answer.text()


async def test_every_part_is_listed(tmp_path: Path) -> None:
    async with cluster(tmp_path) as c, running(c.options(**SERVED)) as scheduler:
        assert await healthz(scheduler) == (200, "ok")
        code, text = await healthz(scheduler, "?verbose")
        assert code == 200 and text.endswith("healthz check passed\n")
        for name in ("ping", "cycles", "dispatcher", "election", "informer-pods", "informer-nodes"):
            assert f"[+]{name} ok" in text


async def test_an_outage_of_the_api_server_fails_nothing(tmp_path: Path) -> None:
    async with cluster(tmp_path) as c, running(c.options(**SERVED, heartbeat_timeout=3.0)) as scheduler:
        await c.submit("before")
        await c.scheduled("before")
        await c.submit("waits", 200)
        c.proxy.stall()
        c.proxy.cut()
        deadline = time.monotonic() + 4
        while time.monotonic() < deadline:
            code, text = await healthz(scheduler, "?verbose")
            assert code == 200, text
            await asyncio.sleep(0.1)
        c.proxy.flow()


async def test_a_loop_that_hangs_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with cluster(tmp_path) as c, running(c.options(**SERVED, heartbeat_timeout=3.0)) as scheduler:
        await c.submit("before")
        await c.scheduled("before")

        async def healthy() -> bool:
            return await healthz(scheduler) == (200, "ok")

        await until(healthy, "a loop that works is not healthy")
        monkeypatch.setattr(scheduler.cycle_loop, "_wait_for_burst_to_end", asyncio.Event().wait)
        await c.submit("after")

        async def fails() -> bool:
            code, text = await healthz(scheduler)
            return code == 500 and "[-]cycles failed: no progress for" in text

        await until(fails, "a loop that hangs is healthy")


async def test_cycles_that_fail_one_after_another_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with cluster(tmp_path) as c, running(c.options(**SERVED, schedule_period=0.05)) as scheduler:

        def broken(*_: Any, **__: Any) -> None:
            raise RuntimeError("HyperNode r0 has a fault")

        with monkeypatch.context() as patched:
            patched.setattr("volcano_py.scheduler.runtime.server.run_once", broken)
            await c.submit("waits")

            async def fails() -> bool:
                return "[-]cycles failed: the last " in (await healthz(scheduler))[1]

            await until(fails, "a scheduler of which every cycle fails is healthy")
            assert "the last reason: RuntimeError: HyperNode r0 has a fault" in (await healthz(scheduler))[1]
            assert scheduler.failed_cycles.count >= 5
            assert b"volcano_py_failed_cycles %d.0" % scheduler.failed_cycles.count in scheduler.reporter.expose()
            tracebacks = [r for r in caplog.records if "a cycle failed" in r.message and r.exc_info]
            assert len(tracebacks) == 1
        await c.scheduled("waits")
        assert await healthz(scheduler) == (200, "ok")


async def test_a_dispatcher_that_hangs_fails_until_it_is_replaced(tmp_path: Path) -> None:
    async with cluster(tmp_path) as c, running(c.options(**SERVED, heartbeat_timeout=3.0)) as scheduler:
        os.kill(scheduler.handle.pid, signal.SIGSTOP)

        async def fails() -> bool:
            return "[-]dispatcher failed: no heartbeat for" in (await healthz(scheduler))[1]

        async def recovered() -> bool:
            return scheduler.handle.restarts == 1 and await healthz(scheduler) == (200, "ok")

        await until(fails, "a dispatcher that hangs is healthy")
        await until(recovered, "it is not replaced")


async def test_an_informer_that_hangs_fails(tmp_path: Path) -> None:
    async with cluster(tmp_path) as c, running(c.options(**SERVED)) as scheduler:
        scheduler.cache.informers["Pod"]._active -= 10_000
        code, text = await healthz(scheduler)
        assert code == 500 and "[-]informer-pods failed: no request and no event for" in text


async def test_a_callback_that_fails_ends_the_process(tmp_path: Path) -> None:
    def broken() -> None:
        raise RuntimeError("half-way")

    async with cluster(tmp_path) as c:
        seen: list[Scheduler] = []
        task = asyncio.create_task(serve(c.options(), seen.append))
        try:
            await until(lambda: seen and seen[0].handle.leading, "it does not lead")
            asyncio.get_running_loop().call_soon(broken)
            with pytest.raises(RuntimeError, match="half-way"):
                await asyncio.wait_for(task, budget())
        finally:
            task.cancel()
            await asyncio.wait([task])
            asyncio.get_running_loop().set_exception_handler(None)


async def test_an_invalid_report_stops_no_cycle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with cluster(tmp_path) as c, running(c.options()) as scheduler:

        def broken(*_: Any) -> None:
            raise ValueError("gauges that do not fit together")

        monkeypatch.setattr(scheduler.reporter.metrics, "cycle", broken)
        for name in ("one", "two"):
            await c.submit(name)
            await c.scheduled(name)


async def test_a_scheduler_with_a_shard_uses_its_nodes(tmp_path: Path) -> None:
    async with cluster(tmp_path) as c:
        await c.client.create(NODESHARD, {"metadata": {"name": "mine"}, "spec": {"nodesDesired": ["node-1"]}})
        async with launched(c.options(sharding_mode="hard", sharding_name="mine")) as scheduler:
            await c.submit("g")
            await c.scheduled("g")
            assert set(await c.nodes_of("g")) == {"node-1"}

            async def status() -> bool:
                shard = await c.client.get(NODESHARD, "mine")
                return bool((shard.get("status") or {}).get("nodesInUse") == ["node-1"])

            await until(status, "the shard has no status")
            assert scheduler.health.answer() == (True, "ok")


async def test_metrics_and_healthz_use_the_certificate(tmp_path: Path) -> None:
    made = certificates.make()
    files = {"ca_cert_file": made.authority, "tls_cert_file": made.certificate, "tls_private_key_file": made.key}
    named = {}
    for name, text in files.items():
        (tmp_path / name).write_bytes(text)
        named[name] = str(tmp_path / name)
    served = {**SERVED, "enable_metrics": True, "enable_pprof": True, "listen_address": "127.0.0.1:0"}
    trusting = ssl.create_default_context(cadata=made.authority.decode())
    async with (
        cluster(tmp_path) as c,
        running(c.options(**served, **named)) as scheduler,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trusting)) as session,
    ):
        for path in ("metrics", "healthz"):
            async with session.get(f"https://127.0.0.1:{scheduler.ports[path]}/{path}") as answer:
                assert answer.status == 200
        async with session.get(f"https://127.0.0.1:{scheduler.ports['metrics']}/debug/pprof/goroutine") as answer:
            assert "task cycles:" in await answer.text()
        with pytest.raises(aiohttp.ClientError):
            await session.get(f"http://127.0.0.1:{scheduler.ports['metrics']}/metrics")
