"""The event loop behind the synchronous client: one thread for the process, so that it also works in a notebook, whose
own loop is running."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any, TypeVar

T = TypeVar("T")


NAME = "volcano-py client"
"""The name of the thread."""


class _Background:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process = 0

    def loop(self) -> asyncio.AbstractEventLoop:
        """The running loop; a fork of the process gets another one."""
        with self._lock:
            if self._loop is None or self._process != os.getpid():
                self._loop = asyncio.new_event_loop()
                self._process = os.getpid()
                threading.Thread(target=self._loop.run_forever, name=NAME, daemon=True).start()
            return self._loop


_BACKGROUND = _Background()


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in the background, and return its result. Ctrl-C cancels it."""
    future = asyncio.run_coroutine_threadsafe(work, _BACKGROUND.loop())
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


def discard(work: Coroutine[Any, Any, object]) -> None:
    """Run a coroutine of a value that is no longer used, also at the end of the process."""
    loop = _BACKGROUND.loop()
    future = asyncio.run_coroutine_threadsafe(work, loop)
    if threading.current_thread().name != NAME:  # the collector may call it in the thread of the loop
        with contextlib.suppress(TimeoutError):
            future.result(1.0)


def iterate(items: AsyncIterator[T]) -> Iterator[T]:
    """The items of an asynchronous generator, one by one; it is closed when the iteration ends."""

    async def following() -> T:
        return await anext(items)

    try:
        while True:
            try:
                yield run(following())
            except StopAsyncIteration:
                return
    finally:
        close = getattr(items, "aclose", None)
        if close is not None:
            run(close())
