"""When the cyclic garbage collector runs."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from volcano_py.scheduler.runtime.collection import keep_loaded, paused


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    """The collector is as before after each test."""
    enabled, thresholds = gc.isenabled(), gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)
    (gc.enable if enabled else gc.disable)()


def collections(objects: int) -> int:
    """The number of collections while this number of objects is created."""
    begun = []
    gc.callbacks.append(lambda phase, _: begun.append(phase) if phase == "start" else None)
    try:
        kept = [[] for _ in range(objects)]
    finally:
        gc.callbacks.pop()
    assert len(kept) == objects
    return len(begun)


def test_nothing_is_collected_while_it_is_paused_and_something_is_afterwards() -> None:
    gc.enable()
    gc.set_threshold(100, 20, 50)
    with paused():
        assert collections(10_000) == 0
    assert collections(10_000) > 0


def test_a_collector_that_is_off_stays_off() -> None:
    gc.disable()
    with paused():
        pass
    assert not gc.isenabled()


def test_the_collector_is_on_again_after_an_error() -> None:
    gc.enable()
    with pytest.raises(ValueError), paused():
        raise ValueError
    assert gc.isenabled()


def test_what_is_loaded_is_not_traversed_again() -> None:
    loaded = [[] for _ in range(1_000)]
    keep_loaded()
    assert gc.get_freeze_count() >= len(loaded)
    assert not any(each is loaded for each in gc.get_objects())
