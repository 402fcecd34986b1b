"""Rejected statuses and conflicts: when the next write of the same object may begin, and which one it is."""

from __future__ import annotations

import asyncio

import pytest

from tests.waiting import budget
from volcano_py.scheduler.cache.status_backoff import StatusBackoff
from volcano_py.scheduler.model.plan import (
    Bind,
    Event,
    Nomination,
    Operation,
    PodCondition,
    PodGroupStatus,
    QueueStatus,
)


class Trial:
    """A back-off with what it emits and decides again."""

    def __init__(self, first_pause: float = 0.01) -> None:
        self.emitted: list[Operation] = []
        self.again: list[Operation] = []
        self.versions: dict[str, str | None] = {}
        self.backoff = StatusBackoff(
            self.emitted.extend, self.again.append, lambda _, key: self.versions.get(key, "1"), first_pause
        )

    async def until_over(self) -> None:
        """Wait until no timer is pending."""
        async with asyncio.timeout(budget()):
            while any(entry.timer is not None for entry in self.backoff._entries.values()):
                await asyncio.sleep(0.002)


def condition(message: str, name: str = "p") -> PodCondition:
    return PodCondition("ns", name, f"uid-{name}", "Unschedulable", message)


async def test_a_rejected_status_is_decided_again_later_each_time() -> None:
    t = Trial(1.0)
    pauses = []
    for _ in range(8):
        t.backoff.rejected(condition("a"))
        (entry,) = t.backoff._entries.values()
        assert entry.timer is not None
        pauses.append(round(entry.timer.when() - asyncio.get_running_loop().time()))
    assert pauses == [1, 2, 4, 8, 16, 30, 30, 30]
    t.backoff.succeeded(condition("b"))
    assert t.backoff._entries == {}
    quick = Trial()
    quick.backoff.rejected(condition("a"))
    await quick.until_over()
    assert quick.again == [condition("a")] and quick.emitted == []


async def test_newer_statuses_of_the_object_are_held_and_the_newest_is_written() -> None:
    t = Trial()
    t.backoff.rejected(condition("a"))
    others = [condition("x", "q"), Nomination("ns", "p", "uid-p", "n0"), QueueStatus("p", {})]
    assert t.backoff.passing([condition("b"), *others]) == others
    assert t.backoff.passing([condition("c")]) == []
    await t.until_over()
    assert t.emitted == [condition("c")] and t.again == []
    assert t.backoff.passing([condition("d")]) == [condition("d")]


async def test_a_bind_drops_the_condition_that_is_held() -> None:
    t = Trial()
    t.backoff.rejected(condition("a"))
    bind = Bind("ns", "p", "uid-p", "n0", "ns/g")
    assert t.backoff.passing([condition("b")]) == [] and t.backoff.passing([bind]) == [bind]
    await t.until_over()
    assert t.emitted == []


async def test_events_of_different_kinds_are_different_objects() -> None:
    t = Trial(60.0)
    pod, queue = (Event(kind, "", "x", "", "Warning", "r", "m") for kind in ("Pod", "Queue"))
    t.backoff.rejected(pod)
    assert t.backoff.passing([pod, queue]) == [queue]
    t.backoff.deleted("Pod", "x")
    assert t.backoff._entries == {}


@pytest.mark.parametrize("newest", ["1", "2"])
async def test_a_conflict_holds_nothing_and_is_decided_again_unless_the_watch_has_returned_a_newer_version(
    newest: str,
) -> None:
    t = Trial()
    first, second = (PodGroupStatus("ns", "g", "u", {"phase": phase}, False, "1") for phase in ("Inqueue", "Running"))
    t.backoff.rejected(first, conflict=True)
    assert t.backoff.passing([second]) == [second]
    t.versions["ns/g"] = newest
    await t.until_over()
    assert t.again == ([first] if newest == "1" else [])


async def test_an_object_that_was_deleted_before_the_rejection_leaves_nothing() -> None:
    t = Trial()
    t.versions["ns/p"] = None
    t.backoff.rejected(condition("a"))
    await t.until_over()
    assert t.backoff._entries == {} and t.again == [condition("a")]


async def test_of_two_conflicts_the_one_from_the_newest_version_counts() -> None:
    """The result of an older write arrived last. A PodGroup stayed Inqueue while its pods ran. Found by the
    simulation."""
    t = Trial()
    t.versions["ns/g"] = "2"
    for version in ("2", "1"):
        status = PodGroupStatus("ns", "g", "u", {"phase": "Running"}, False, version)
        t.backoff.rejected(status, conflict=True)
    await t.until_over()
    assert len(t.again) == 1
    t.backoff.rejected(PodGroupStatus("ns", "g", "u", {"phase": "Running"}, False, "1"), conflict=True)
    await t.until_over()
    assert len(t.again) == 1
