"""Health checks: what is listed, what fails, and when a loop counts as stuck."""

from __future__ import annotations

import asyncio

import aiohttp

from volcano_py.kube.health import Health, Progress
from volcano_py.kube.serve import serving


def test_a_failing_check_is_named_and_the_others_are_listed() -> None:
    health, wrong = Health(), [""]
    health.add("loop", lambda: wrong[0])
    health.add("ping", lambda: "")
    assert health.answer() == (True, "ok")
    assert health.answer(verbose=True) == (True, "[+]loop ok\n[+]ping ok\nhealthz check passed\n")
    wrong[0] = "no progress"
    assert health.answer() == (False, "[-]loop failed: no progress\n[+]ping ok\nhealthz check failed\n")


def test_a_check_that_raises_fails() -> None:
    health = Health()
    health.add("broken", lambda: str({}["nothing"]))
    healthy, text = health.answer()
    assert not healthy and "[-]broken failed: the check itself failed: KeyError('nothing')" in text


async def test_a_task_that_has_ended_fails() -> None:
    health = Health()
    task = asyncio.create_task(asyncio.sleep(0))
    health.add_task("informer", task)
    assert health.answer() == (True, "ok")
    await task
    assert not health.answer()[0]


def test_a_loop_is_stuck_when_it_does_not_come_round_while_it_has_work() -> None:
    now = 100.0
    progress = Progress(10, clock=lambda: now)
    now += 1000
    assert progress.check() == "", "it has not begun"
    progress.working()
    now += 10
    assert progress.check() == ""
    now += 1
    assert progress.check() == "no progress for 11 s"
    progress.idle()
    now += 1000
    assert progress.check() == "", "it waits and has no work"
    progress.due()
    now += 5
    progress.due()
    now += 6
    assert progress.check() == "no progress for 11 s", "more work does not start the clock again"
    progress.idle(seconds=2)
    now += 12
    assert progress.check() == ""
    now += 1
    assert progress.check() == "no progress for 11 s", "it should have come round by itself"


async def test_healthz_is_served_with_its_checks() -> None:
    health = Health()
    health.add("dispatcher", lambda: "it is silent")
    async with serving(healthz=("127.0.0.1:0", health)) as ports, aiohttp.ClientSession() as session:
        url = f"http://127.0.0.1:{ports['healthz']}/healthz"
        async with session.get(url) as answer:
            assert answer.status == 500 and "[-]dispatcher failed: it is silent" in await answer.text()
        health.add("dispatcher", lambda: "")
        async with session.get(url) as answer:
            assert (answer.status, await answer.text()) == (200, "ok")
        async with session.get(url + "?verbose") as answer:
            assert (answer.status, await answer.text()) == (200, "[+]dispatcher ok\nhealthz check passed\n")
