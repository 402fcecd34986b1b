"""/debug/pprof: where this process spends its CPU time, and what it does now. Go: net/http/pprof.

    go tool pprof http://localhost:8080/debug/pprof/profile?seconds=30
    curl http://localhost:8080/debug/pprof/goroutine

A timer of the process's CPU time sends SIGPROF, and the handler counts the stack of the main thread, in which the event
loop and the cycles run. An idle process has no samples. Compiled functions have no Python frames: their time belongs to
the function that calls them.
"""

from __future__ import annotations

import asyncio
import gzip
import io
import signal
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from types import FrameType

from aiohttp import web

from volcano_py.kube.profile_proto import Frame, encode

PATH = "/debug/pprof/"
HZ = 100
"""Samples per second of CPU time, as in Go."""
DEFAULT_SECONDS = 30.0
MAX_SECONDS = 300.0
Stack = tuple[Frame, ...]

_INDEX = f"""{PATH} serves:

goroutine   the stacks of all threads and tasks, as text
profile     the CPU profile, for `go tool pprof`; ?seconds=30 is its duration, {MAX_SECONDS:.0f} at most
cmdline     the command line
"""


def handlers() -> Mapping[str, Callable[[web.Request], Awaitable[web.Response]]]:
    """The handlers by path."""
    sampler = Sampler()

    async def index(request: web.Request) -> web.Response:
        return web.Response(text=_INDEX)

    async def cmdline(request: web.Request) -> web.Response:
        return web.Response(text="\0".join(sys.orig_argv))

    async def goroutine(request: web.Request) -> web.Response:
        return web.Response(text=stacks())

    async def profile(request: web.Request) -> web.Response:
        text = request.query.get("seconds", "")
        try:
            seconds = float(text) if text else DEFAULT_SECONDS
        except ValueError:
            seconds = 0.0
        if not 0 < seconds <= MAX_SECONDS:
            return web.Response(text=f"seconds={text}: must be a number up to {MAX_SECONDS:.0f}\n", status=400)
        begun = time.time_ns()
        try:
            found = await sampler.sample(seconds)
        except SamplerError as error:
            return web.Response(text=f"Could not enable CPU profiling: {error}\n", status=500)
        body = encode(found, 1_000_000_000 // HZ, begun, time.time_ns() - begun)
        return web.Response(
            body=gzip.compress(body),
            content_type="application/octet-stream",
            headers={"Content-Disposition": 'attachment; filename="profile"'},
        )

    return {PATH: index, f"{PATH}cmdline": cmdline, f"{PATH}goroutine": goroutine, f"{PATH}profile": profile}


class SamplerError(Exception):
    """The CPU profile cannot be started; the text is the reason."""


class Sampler:
    """Samples the main thread, for one request at a time."""

    def __init__(self) -> None:
        self._stacks: Counter[Stack] | None = None

    async def sample(self, seconds: float) -> Counter[Stack]:
        """The stacks of that time, the innermost function first, with their numbers of samples. Raises SamplerError if
        another request samples, or if the caller does not run in the main thread."""
        if self._stacks is not None:
            raise SamplerError("cpu profiling already in use")
        if threading.current_thread() is not threading.main_thread():
            raise SamplerError("the server does not run in the main thread, which handles signals")
        found = self._stacks = Counter()
        before = signal.signal(signal.SIGPROF, self._take)
        signal.setitimer(signal.ITIMER_PROF, 1 / HZ, 1 / HZ)
        try:
            await asyncio.sleep(seconds)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, before)
            self._stacks = None
        return found

    def _take(self, number: int, frame: FrameType | None) -> None:
        stack = []
        while frame is not None:
            code = frame.f_code
            stack.append(Frame(code.co_qualname, code.co_filename, code.co_firstlineno, frame.f_lineno or 0))
            frame = frame.f_back
        if self._stacks is not None:
            self._stacks[tuple(stack)] += 1


def stacks() -> str:
    """The stacks of all threads, and of all tasks of the running event loop."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    out = io.StringIO()
    for ident, frame in sys._current_frames().items():
        out.write(f"thread {names.get(ident, ident)}:\n")
        out.writelines(traceback.format_stack(frame))
        out.write("\n")
    for task in sorted(asyncio.all_tasks(), key=lambda t: t.get_name()):
        out.write(f"task {task.get_name()}:\n")
        for frame in task.get_stack():
            out.writelines(traceback.format_stack(frame, limit=1))
        out.write("\n")
    return out.getvalue()
