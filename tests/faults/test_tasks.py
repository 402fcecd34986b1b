"""The tool that kills tasks does what the fault tests rely on."""

from __future__ import annotations

import asyncio
import threading

import pytest

from tests.faults.tasks import OWNER, Killed, Tasks


async def test_the_exception_is_raised_at_the_await_and_can_be_caught_there() -> None:
    caught: list[BaseException] = []

    async def part() -> str:
        try:
            await asyncio.Event().wait()
        except Exception as error:
            caught.append(error)
        await asyncio.sleep(0)
        return "goes on"

    tasks = Tasks()
    with tasks.recording():
        task = asyncio.create_task(part(), name="part")
        await asyncio.sleep(0)
        recorded = tasks.kill("part")
        assert await task == "goes on"
    assert [type(error) for error in caught] == [Killed]
    assert recorded.raised and task.cancelling() == 0


async def test_a_killed_task_of_a_group_ends_the_group_with_its_exception() -> None:
    tasks = Tasks()
    with tasks.recording(), pytest.raises(ExceptionGroup) as failure:
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.Event().wait())
            group.create_task(asyncio.sleep(3600), name="sleeper")
            await asyncio.sleep(0)
            assert tasks.alive() == ["Event.wait", "sleeper"]
            tasks.kill("Event.wait", ZeroDivisionError("odd"))
    assert [type(error) for error in failure.value.exceptions] == [ZeroDivisionError]
    assert tasks.names() == ["Event.wait", "sleeper"] and tasks.alive() == []


async def test_an_ordinary_cancellation_stays_one_also_inside_a_timeout() -> None:
    tasks = Tasks()
    with tasks.recording():

        async def part() -> None:
            async with asyncio.timeout(0):
                await asyncio.sleep(3600)

        with pytest.raises(TimeoutError):
            await asyncio.create_task(part())
        task = asyncio.create_task(asyncio.sleep(3600))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_tasks_of_event_loops_in_threads_are_recorded_and_killed() -> None:
    ended: list[BaseException] = []
    waiting = threading.Event()

    async def part() -> None:
        waiting.set()
        await asyncio.sleep(3600)

    def thread() -> None:
        try:
            asyncio.run(part())
        except Exception as error:
            ended.append(error)

    tasks = Tasks()
    with tasks.recording():
        running = asyncio.create_task(asyncio.to_thread(thread))
        assert await asyncio.to_thread(waiting.wait, 30)
        tasks.kill(part.__qualname__)
        await running
    assert [type(error) for error in ended] == [Killed]


async def test_a_task_that_does_not_live_cannot_be_killed() -> None:
    tasks = Tasks()
    with tasks.recording(), pytest.raises(LookupError, match="no living task 'absent'"):
        tasks.kill("absent")


async def test_the_next_task_of_a_coroutine_is_killed_at_its_first_await_and_owners_are_told_apart() -> None:
    async def part() -> None:
        await asyncio.sleep(3600)

    async def component() -> None:
        OWNER.set("component")
        await asyncio.create_task(part())

    tasks = Tasks()
    with tasks.recording():
        other = asyncio.create_task(asyncio.sleep(3600), name="other")
        tasks.kill_next(part.__qualname__)
        assert tasks.armed == [part.__qualname__]
        with pytest.raises(Killed):
            await asyncio.create_task(component(), name="component")
        other.cancel()
    assert tasks.names("component") == [part.__qualname__] and tasks.armed == []
