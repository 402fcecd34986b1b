"""Whether the workers of a controller make progress, for /healthz.

Volcano has no equivalent; its /healthz reports ok as long as the process runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextvars import ContextVar

from volcano_py.kube.health import Progress

WORK_SECONDS = 900.0
"""Seconds that a worker may spend on one object without a finished write, successful or not. The longest single write
is one that the API server throttles ten times for a minute each."""

_current: ContextVar[Progress | None] = ContextVar("progress of the worker", default=None)


def of_workers(number: int) -> list[Progress]:
    """One instance per worker of a controller."""
    return [Progress(WORK_SECONDS) for _ in range(number)]


def use(progress: Progress) -> None:
    """Record the progress of the worker in the current task here."""
    _current.set(progress)


def moved() -> None:
    """The worker in the current task has made progress."""
    progress = _current.get()
    if progress is not None:
        progress.working()


def check(workers: Iterable[Progress]) -> Callable[[], str]:
    """The health check of one controller."""
    workers = tuple(workers)
    return lambda: next((why for one in workers if (why := one.check())), "")
