"""When the cyclic garbage collector runs."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import orjson
import pytest

from benchmarks.churn import START, busy, one_more
from benchmarks.decision import configuration
from benchmarks.scenario import objects
from volcano_py.api.codec import decoder
from volcano_py.scheduler.framework.config import load
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.run_once import REGISTRY, run_once
from volcano_py.scheduler.runtime.collection import keep_loaded, paused
from volcano_py.simulate.manifests import STRUCTS


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


def test_a_session_that_is_discarded_needs_no_collection() -> None:
    """With the rules of all default plugins, and a pod that was placed."""
    spec = busy(20, 2, 10)
    model = Cluster(shadow_schedulers=frozenset({"volcano"}))
    for kind, manifest in [*objects(spec), *one_more(1)]:
        model.upsert(kind, decoder(STRUCTS[kind]).decode(orjson.dumps(manifest)))
    conf = load(configuration(spec), REGISTRY.actions)
    run_once(model, conf, START, seed=1).session.discard()  # what is cached between sessions
    for kind, manifest in one_more(2):
        model.upsert(kind, decoder(STRUCTS[kind]).decode(orjson.dumps(manifest)))
    gc.collect()
    gc.disable()
    report = run_once(model, conf, START + 1, seed=1)
    assert report.bound == 1
    parts = [weakref.ref(part) for part in (report.session.moves, report.session.placement, report.session.callbacks)]
    del report.plan[:]
    report.session.discard()
    assert [part() for part in parts] == [None] * 3
    assert gc.collect() < 100, "objects of the session"
