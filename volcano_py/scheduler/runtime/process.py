"""The scheduler's process: its signals, its log, and its exit code. Volcano: cmd/scheduler/main.go."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable
from typing import Any

from volcano_py.kube import KubeError, logs
from volcano_py.scheduler.configuration.extensions import ExtensionError
from volcano_py.scheduler.configuration.options import Options
from volcano_py.scheduler.framework.config import ConfigurationError
from volcano_py.scheduler.runtime.server import Scheduler

log = logging.getLogger(__name__)


async def serve(options: Options, started: Callable[[Scheduler], None] = lambda scheduler: None) -> None:
    """Run a scheduler until SIGTERM or SIGINT. `started` is called with it, for tests and the sandbox."""
    if options.config:
        # Only profiles need it, and their modules are a quarter of the time of a start.
        from volcano_py.scheduler.runtime.cluster_version import with_cluster_version

        options = await with_cluster_version(options)
    scheduler = Scheduler(options)
    started(scheduler)
    task = asyncio.create_task(scheduler.run())
    loop = asyncio.get_running_loop()
    broken: list[Exception] = []

    def unexpected(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        loop.default_exception_handler(context)
        error = context.get("exception")
        if "handle" in context and isinstance(error, Exception):
            # A callback (of a timer or a signal) failed half-way: the state may be inconsistent.
            broken.append(error)
            task.cancel()

    loop.set_exception_handler(unexpected)

    def stop(name: str) -> None:
        log.info("%s: stopping", name)
        scheduler.stopping = True
        task.cancel()

    for signal_ in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signal_, stop, signal_.name)
    if options.cache_dumper:
        loop.add_signal_handler(signal.SIGUSR1, scheduler.write_dump)
        loop.add_signal_handler(signal.SIGUSR2, scheduler.log_summary)
    try:
        await task
    except asyncio.CancelledError:
        if broken:
            raise broken[0] from None


def main(options: Options) -> int:
    """The process. Exit codes: 0 after a signal, 2 for a bad configuration or plugin, 1 for any other error."""
    logs.configure("scheduler", options.log_level)
    for flag in options.ignored:
        log.info("%s is accepted and has no effect", flag)
    try:
        asyncio.run(serve(options))
    except (ConfigurationError, ExtensionError) as error:
        log.error("%s", error)
        return 2
    except (KubeError, OSError, ValueError) as error:
        log.error("%s", error)
        return 1
    except Exception:
        log.exception("the scheduler ends after an unexpected error")
        return 1
    return 0
