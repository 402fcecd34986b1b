"""Whether the workers of a controller come on with their work, for /healthz.

Volcano: none; its /healthz answers ok for as long as the process lives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextvars import ContextVar

from volcano_py.kube.health import Progress

WORK_SECONDS = 900.0
"""For which a worker may be busy with one object without any write that ended, well or not. The longest single write is
one that the API server asks to repeat, ten times after a minute each."""

_current: ContextVar[Progress | None] = ContextVar("progress of the worker", default=None)


def of_workers(number: int) -> list[Progress]:
    """One for each worker of a controller."""
    return [Progress(WORK_SECONDS) for _ in range(number)]


def use(progress: Progress) -> None:
    """The worker that runs in this task reports its progress here."""
    _current.set(progress)


def moved() -> None:
    """The worker that runs in this task has come on."""
    progress = _current.get()
    if progress is not None:
        progress.working()


def check(workers: Iterable[Progress]) -> Callable[[], str]:
    """The check of one controller."""
    workers = tuple(workers)
    return lambda: next((why for one in workers if (why := one.check())), "")
