"""Every queue is below root, and only queues with a reported fault change their place."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as s

from volcano_py.api import scheduling as api
from volcano_py.api.meta import ObjectMeta
from volcano_py.scheduler.model.queue import Queue
from volcano_py.scheduler.model.queue_parents import parents_of

NAMES = ("a", "b", "c", "d", "root")


def queues(parents: dict[str, str | None]) -> dict[str, Queue]:
    return {
        name: Queue(api.Queue(metadata=ObjectMeta(name=name), spec=api.QueueSpec(parent=parent or "")))
        for name, parent in parents.items()
    }


@given(s.dictionaries(s.sampled_from(NAMES), s.sampled_from(("", *NAMES, "lost"))))
def test_every_queue_is_below_root(given_parents: dict[str, str]) -> None:
    parents, faults = parents_of(queues(dict(given_parents)))
    assert set(parents) == set(given_parents) - {"root"} and set(faults) <= set(parents)
    for name, parent in parents.items():
        assert parent == "root" or parent in parents
        if name not in faults:
            assert parent == (given_parents[name] or "root")
        way = [name]
        while way[-1] != "root":
            assert len(way) <= len(parents), f"{name} is in a cycle"
            way.append(parents[way[-1]])


def test_the_first_queue_of_a_cycle_is_placed_below_root() -> None:
    parents, faults = parents_of(queues({"c": "b", "b": "a", "a": "c", "tail": "b", "sound": None}))
    assert parents == {"c": "b", "b": "a", "a": "root", "tail": "b", "sound": "root"}
    assert list(faults) == ["a"] and "(a → c → b)" in faults["a"]


def test_the_order_of_the_objects_does_not_matter() -> None:
    one = parents_of(queues({"a": "b", "b": "a"}))
    assert one == parents_of(queues({"b": "a", "a": "b"}))
