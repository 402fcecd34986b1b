import asyncio
import time

import pytest

from tests.waiting import budget
from volcano_py.kube.workqueue import ShutDown, WorkQueue


async def test_a_key_waits_only_once():
    queue = WorkQueue()
    for key in ("a", "b", "a"):
        queue.add(key)
    assert [await queue.get(), await queue.get()] == ["a", "b"]
    assert len(queue) == 0


async def test_a_key_in_work_comes_again_only_when_it_is_done():
    queue = WorkQueue()
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a")
    queue.add("a")
    assert len(queue) == 0
    queue.done("a")
    assert await queue.get() == "a"
    queue.done("a")
    assert len(queue) == 0


async def test_of_several_delays_the_earliest_counts():
    queue = WorkQueue()
    begun = time.monotonic()
    queue.add_after("a", 5_000)
    queue.add_after("a", 0.05)
    queue.add_after("a", 3_000)
    assert await asyncio.wait_for(queue.get(), budget()) == "a"
    assert time.monotonic() - begun > 0.04


async def test_retries_wait_longer_and_longer_until_forgotten():
    queue = WorkQueue(first_retry=0.02)
    waits = []
    for _ in range(3):
        begun = time.monotonic()
        queue.add_rate_limited("a")
        await queue.get()
        queue.done("a")
        waits.append(time.monotonic() - begun)
    assert waits[0] >= 0.019 and waits[1] >= 0.039 and waits[2] >= 0.079
    assert queue.retries("a") == 3
    queue.forget("a")
    assert queue.retries("a") == 0


async def test_workers_share_the_keys_and_none_is_worked_on_twice_at_a_time():
    queue, active, seen = WorkQueue(), set(), []

    async def worker():
        while True:
            try:
                key = await queue.get()
            except ShutDown:
                return
            assert key not in active
            active.add(key)
            await asyncio.sleep(0)
            seen.append(key)
            active.discard(key)
            queue.done(key)

    tasks = [asyncio.create_task(worker()) for _ in range(8)]
    for i in range(500):
        queue.add(i % 50)
        if i % 7 == 0:
            await asyncio.sleep(0)
    queue.shut_down()
    await asyncio.gather(*tasks)
    assert set(seen) == set(range(50))


async def test_a_cancelled_worker_loses_no_key():
    queue = WorkQueue()
    first, second = asyncio.create_task(queue.get()), asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add("a")
    first.cancel()
    assert await asyncio.wait_for(second, budget()) == "a"


async def test_shut_down_hands_out_the_rest():
    queue = WorkQueue()
    queue.add("a")
    queue.add_after("later", 0.01)
    queue.shut_down()
    queue.add("b")
    assert await queue.get() == "a"
    with pytest.raises(ShutDown):
        await queue.get()
    await asyncio.sleep(0.03)
    assert len(queue) == 0


async def test_conflicts_are_retried_at_once_and_then_with_back_off(monkeypatch):
    """A 409 that lasts is not repeated fifty times a second. Found by the simulation under faults."""
    queue, delays = WorkQueue(), []
    monkeypatch.setattr(queue, "add_after", lambda key, seconds: delays.append(seconds))
    for _ in range(12):
        queue.add_after_conflict("a")
    assert delays[:3] == [0.02, 0.04, 0.08] and delays[-1] == 10.0
    assert queue.retries("a") == 0
    queue.forget("a")
    queue.add_after_conflict("a")
    assert delays[-1] == 0.02


async def test_no_retry_waits_for_more_than_a_minute(monkeypatch):
    """client-go's limit is 1,000 s: what the API server rejected for long was not tried again for as long."""
    queue = WorkQueue()
    delays = []
    monkeypatch.setattr(queue, "add_after", lambda key, seconds: delays.append(seconds))
    for _ in range(30):
        queue.add_rate_limited("a")
    assert max(delays) == 60.0
