"""When Python's cyclic garbage collector runs in the scheduler. Not in Volcano.

A collection traverses all objects that were created since the last one, nearly all of which are in use: the objects of
the API server, and those of the session. It does not run while objects are loaded, nor during a cycle, whose plan would
wait for it; what a cycle leaves is collected after it.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_THRESHOLDS = (50_000, 20, 50)
"""Objects that are created until the youngest ones are collected; collections until older ones are, too."""


def keep_loaded() -> None:
    """Called when all objects are loaded: these are long-lived, and no later collection traverses them.

    The garbage of a start, some thousand small objects, stays with them: to find it would take as long as three cycles,
    and the first pods would wait for it.
    """
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)


@contextmanager
def paused() -> Iterator[None]:
    """No collection within this context."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
