"""Groups of named tasks: when one of them ends, all of them end.

A process whose election, informer or worker has ended must not continue: it would report `ok` and do
nothing. Ending is safe, because the container is restarted and every component recovers its state from the API
server. Corresponds to client-go's rule that a component exits when an essential part stops.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine, Mapping
from typing import Any, TypeVar

T = TypeVar("T")


class TaskEnded(Exception):
    """A task that must run as long as the process has returned or was cancelled."""

    def __init__(self, name: str) -> None:
        super().__init__(f"task {name!r} ended unexpectedly")
        self.name = name


async def run_all(parts: Mapping[str, Coroutine[Any, Any, None]]) -> None:
    """Run the tasks until one ends or this call is cancelled; the others are then cancelled and awaited.

    Raises the exception of the task, or TaskEnded if it returned. Never returns.
    """
    tasks = [asyncio.create_task(part, name=name) for name, part in parts.items()]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        raise _cause(next(task for task in tasks if task in done))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def first(awaitable: Awaitable[T], *tasks: asyncio.Task[Any]) -> T:
    """The result of `awaitable`, unless one of the tasks ends first: then the exception of that task is raised."""
    future = asyncio.ensure_future(awaitable)
    try:
        await asyncio.wait({future, *tasks}, return_when=asyncio.FIRST_COMPLETED)
        if future.done():
            return future.result()
        raise _cause(next(task for task in tasks if task.done()))
    finally:
        future.cancel()


def _cause(task: asyncio.Task[Any]) -> BaseException:
    if not task.cancelled() and (error := task.exception()) is not None:
        return error
    return TaskEnded(task.get_name())
