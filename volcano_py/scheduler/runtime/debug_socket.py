"""The debug socket of a running scheduler: its log level, and dumps of its cache over HTTP. Volcano: the klog socket,
which has only the log level.

    curl --unix-socket /tmp/klog-socks/klog-klog.sock 'http://localhost/setlevel?level=4&duration=60s'

Served if the environment variable DEBUG_SOCKET_DIR is set, as in Volcano's manifests. Without it Volcano uses a folder
that any user of the machine can create first. Levels are klog's: 4 and more is DEBUG, less is INFO.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import stat
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from aiohttp import web

from volcano_py.api.duration import parse_duration
from volcano_py.kube.flags import DEBUG_FROM
from volcano_py.kube.serve import Handler

log = logging.getLogger(__name__)

VARIABLE = "DEBUG_SOCKET_DIR"
SOCKET = "klog-klog.sock"
_DEFAULT = 3
_AT_ONCE = 500
"""Objects of a dump that are encoded before the event loop continues."""
_USAGE = (
    "level must be a whole number above 0, and duration a positive Go duration; for example\n"
    "curl --unix-socket {socket} 'http://localhost/setlevel?level=4&duration=60s'\n"
)


class LogLevel:
    """The current level, and the level at the start, which applies again after a while.

    `apply`: is called with DEBUG or INFO when that changes.
    """

    def __init__(self, startup: str, apply: Callable[[str], None]) -> None:
        self._startup = startup
        self._apply = apply
        self._timer: asyncio.TimerHandle | None = None
        self._at_startup = DEBUG_FROM if startup == "DEBUG" else _DEFAULT
        self.verbosity = self._at_startup

    def set(self, verbosity: int, seconds: float) -> None:
        """Log with this verbosity for a while; an earlier request ends."""
        self.cancel()
        self._change(verbosity, "DEBUG" if verbosity >= DEBUG_FROM else "INFO")
        self._timer = asyncio.get_running_loop().call_later(seconds, self._reset)

    def cancel(self) -> None:
        """Keep the current level."""
        if self._timer is not None:
            self._timer.cancel()

    def _reset(self) -> None:
        self._change(self._at_startup, self._startup)

    def _change(self, verbosity: int, level: str) -> None:
        self.verbosity = verbosity
        self._apply(level)
        log.log(max(logging.INFO, logging.getLogger().level), "log level: %s (verbosity %d)", level, verbosity)


class Dumps(NamedTuple):
    """What the socket can dump."""

    objects: Callable[[], Iterator[bytes]]
    """The objects of the cache as JSON, in parts."""
    summary: Callable[[], Iterable[str]]
    """Lines about the cache."""


@contextlib.asynccontextmanager
async def serving_debug_socket(level: LogLevel, dumps: Dumps | None) -> AsyncIterator[None]:
    """Serve the socket while the context is active, if there is a folder for it that can be used; otherwise log why.
    `dumps`: of /dump and /summary; None: these do not exist."""
    folder = os.environ.get(VARIABLE, "")
    if not folder:
        yield
        return
    path = Path(folder) / SOCKET
    app = web.Application()
    app.router.add_get("/setlevel", _setter(level, path))
    app.router.add_get("/getlevel", _getter(level))
    if dumps is not None:
        app.router.add_get("/dump", _dumper(dumps))
        app.router.add_get("/summary", _summary(dumps))
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    number = 0
    try:
        try:
            bound = _bind(path)
            number = path.stat().st_ino
            await web.SockSite(runner, bound).start()
        except OSError as error:  # for example, paths of sockets have at most 107 bytes
            why = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
            log.warning("%s cannot be served (%s); choose another folder with %s, or unset it", path, why, VARIABLE)
        else:
            log.info("%s are served on %s", " and ".join(str(r.canonical) for r in app.router.resources()), path)
        yield
    finally:
        with contextlib.suppress(OSError):
            if path.stat().st_ino == number:  # not that of another process
                path.unlink()
        level.cancel()
        await runner.cleanup()


def _bind(path: Path) -> socket.socket:
    """A socket that only this user can open, instead of one of an earlier process. No other task runs while the umask
    is another one."""
    path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISSOCK(path.lstat().st_mode):
            path.unlink()
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        bound.bind(str(path))
    except OSError:
        bound.close()
        raise
    finally:
        os.umask(before)
    return bound


def _setter(level: LogLevel, path: Path) -> Handler:
    async def answer(request: web.Request) -> web.Response:
        wanted, duration = request.query.get("level", ""), request.query.get("duration", "")
        try:
            verbosity, seconds = int(wanted), parse_duration(duration)
        except ValueError:
            verbosity, seconds = 0, 0.0
        if verbosity <= 0 or seconds < 0.001:
            return web.Response(text=_USAGE.format(socket=path), status=400)
        level.set(verbosity, seconds)
        return web.Response(text=f"Change klog log level to {verbosity} successfully and  for {duration}\n")

    return answer


def _getter(level: LogLevel) -> Handler:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(text=f"Current klog log level: {level.verbosity}\n")

    return answer


def _dumper(dumps: Dumps) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        parts = dumps.objects()
        while found := b"".join(islice(parts, _AT_ONCE)):
            await response.write(found)
        await response.write_eof()
        return response

    return answer


def _summary(dumps: Dumps) -> Handler:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(text="".join(f"{line}\n" for line in dumps.summary()))

    return answer
