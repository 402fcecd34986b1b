"""Kills of asyncio tasks: records each task that a component creates, and raises an exception inside any one of them.

    tasks = Tasks()
    with tasks.recording():          # the running event loop, and every event loop that is made meanwhile
        component = asyncio.create_task(run(...))
        ...
        tasks.kill("leader election")

Where components and servers share an event loop, `OWNER` separates their tasks: set it in the task that runs the
component, and all tasks that come of it have that owner; tasks of event loops of other threads have the owner "thread".

A task is named by its task name, or by the qualified name of its coroutine if the event loop made the name up. The
exception is raised at the await at which the task waits, as if what it waits for had failed.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import threading
from collections.abc import Coroutine, Iterable, Iterator
from contextvars import ContextVar
from typing import Any

OWNER: ContextVar[str] = ContextVar("component whose tasks are created", default="")
_MADE_UP = re.compile(r"Task-\d+")
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


class Killed(Exception):
    """What a killed task raises: an exception that no component expects."""


class Recorded:
    """One task: its coroutine, wrapped, so that a cancellation can be turned into another exception."""

    def __init__(self, coro: Coroutine[Any, Any, Any]) -> None:
        self.task: asyncio.Task[Any] | None = None
        self.error: BaseException | None = None
        """What is raised instead of the next CancelledError."""
        self.raised = False
        """Whether the exception was raised inside the task."""
        self.owner = ""
        self._coro = coro
        self.__name__ = getattr(coro, "__name__", type(coro).__name__)
        self.__qualname__ = getattr(coro, "__qualname__", self.__name__)

    @property
    def name(self) -> str:
        """The task's own name, or its coroutine's qualified name."""
        own = self.task.get_name() if self.task is not None else ""
        return self.__qualname__ if not own or _MADE_UP.fullmatch(own) else _ADDRESS.sub("", own)

    @property
    def alive(self) -> bool:
        return self.task is not None and not self.task.done()

    def send(self, value: Any) -> Any:
        return self._coro.send(value)

    def throw(self, *args: Any) -> Any:
        thrown = args[0]
        cancelled = isinstance(thrown, asyncio.CancelledError) or thrown is asyncio.CancelledError
        if self.error is not None and cancelled:
            error, self.error, self.raised = self.error, None, True
            assert self.task is not None
            self.task.uncancel()  # it was no request to end, and asyncio.timeout and TaskGroup count those
            return self._coro.throw(error)
        return self._coro.throw(*args)

    def close(self) -> None:
        self._coro.close()

    def __await__(self) -> Any:
        return self._coro.__await__()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._coro, name)  # cr_frame and the like, for stack traces


Coroutine.register(Recorded)


class Tasks:
    """The tasks that were created while `recording`, oldest first."""

    def __init__(self) -> None:
        self.created: list[Recorded] = []
        self._armed: dict[str, BaseException] = {}
        self._lock = threading.Lock()
        self._main: asyncio.AbstractEventLoop | None = None

    @contextlib.contextmanager
    def recording(self) -> Iterator[Tasks]:
        """Record the tasks of the running event loop and of those that threads make, until the context ends."""
        loop = asyncio.get_running_loop()
        before, make = loop.get_task_factory(), asyncio.events.new_event_loop
        self._main = loop

        def new_event_loop() -> asyncio.AbstractEventLoop:
            made = make()
            made.set_task_factory(self._factory)
            return made

        loop.set_task_factory(self._factory)
        asyncio.events.new_event_loop = new_event_loop
        try:
            yield self
        finally:
            asyncio.events.new_event_loop = make
            loop.set_task_factory(before)

    def names(self, *owners: str) -> list[str]:
        """The name of each task created so far (for these owners, if any), once each, in the order of creation."""
        return list(dict.fromkeys(one.name for one in list(self.created) if not owners or one.owner in owners))

    def alive(self, *owners: str) -> list[str]:
        """Names of the tasks that have not ended, once each."""
        chosen = (one for one in list(self.created) if one.alive and (not owners or one.owner in owners))
        return list(dict.fromkeys(one.name for one in chosen))

    def kill_next(self, name: str, error: BaseException | None = None) -> None:
        """Raise `error` (else `Killed`) at the first await of the next task of this coroutine, however short it is."""
        self._armed[name] = error if error is not None else Killed(f"{name} was killed by a test")

    @property
    def armed(self) -> list[str]:
        """Coroutines given to `kill_next` of which no task was created since."""
        return list(self._armed)

    def disarm(self) -> None:
        """Forget what `kill_next` was called for."""
        self._armed.clear()

    def coroutine_of(self, name: str) -> str:
        """The qualified name of the coroutine of a task that was recorded under this name."""
        return next(one.__qualname__ for one in list(self.created) if one.name == name)

    def kill(self, name: str, error: BaseException | None = None, owners: Iterable[str] = ()) -> Recorded:
        """Raise `error` (else `Killed`) inside the oldest living task of this name (and of these owners, if any).

        Raises LookupError if none lives.

        It is raised soon afterwards: wait for what is to come of it.
        """
        for one in list(self.created):
            ours = one.name == name and (not owners or one.owner in owners)
            if ours and one.alive and one.task is not asyncio.current_task():
                assert one.task is not None
                one.error = error if error is not None else Killed(f"{name} was killed by a test")
                with contextlib.suppress(RuntimeError):  # the loop of its thread may be closed since
                    one.task.get_loop().call_soon_threadsafe(one.task.cancel)
                    return one
        raise LookupError(f"no living task {name!r}; there are {', '.join(self.alive()) or 'none'}")

    def _factory(self, loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> asyncio.Task[Any]:
        if not isinstance(coro, Coroutine):
            return asyncio.Task(coro, loop=loop, **options)  # a generator-based coroutine cannot be wrapped
        recorded = Recorded(coro)
        recorded.task = asyncio.Task(recorded, loop=loop, **options)
        recorded.owner = OWNER.get() or ("" if loop is self._main else "thread")
        with self._lock:
            self.created.append(recorded)
        error = self._armed.pop(recorded.__qualname__, None)
        if error is not None:
            recorded.error = error
            # After its first step, which runs before: the task then waits.
            loop.call_soon(loop.call_soon, recorded.task.cancel)
        return recorded.task
