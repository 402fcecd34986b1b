"""Statuses of queues: the first one is sent at once, the newest one when a pause ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from volcano_py.scheduler.dispatch.queue_spacing import QueueSpacing
from volcano_py.scheduler.model.plan import Bind, Operation, QueueStatus


class Timers:
    """Timers that the test ends."""

    def __init__(self) -> None:
        self.running: dict[str, Callable[[str], None]] = {}

    def later(self, seconds: float, call: Callable[[str], None], name: str) -> Any:
        assert name not in self.running and seconds > 0
        self.running[name] = call
        return self

    def cancel(self) -> None:
        self.running.clear()

    def end(self, name: str) -> None:
        self.running.pop(name)(name)


def status(name: str, cpu: int) -> QueueStatus:
    return QueueStatus(name, {"cpu": str(cpu)})


def test_the_newest_status_is_sent_when_the_pause_ends() -> None:
    emitted: list[Operation] = []
    timers = Timers()
    spacing = QueueSpacing(emitted.extend, timers.later)
    bind = Bind("ns", "p", "u", "n1", "ns/g")
    assert spacing.passing([bind]) == [bind] and not timers.running
    assert spacing.passing([bind, status("a", 1), status("b", 1)]) == [bind, status("a", 1), status("b", 1)]
    assert spacing.passing([status("a", 2), bind]) == [bind]
    assert spacing.passing([status("a", 3)]) == [] and emitted == []
    timers.end("a")
    assert emitted == [status("a", 3)]
    assert spacing.passing([status("a", 4)]) == [], "it was sent just now"
    timers.end("b")
    assert emitted == [status("a", 3)], "b has not changed"
    assert spacing.passing([status("b", 2)]) == [status("b", 2)]


def test_without_changes_no_pause_remains() -> None:
    timers = Timers()
    spacing = QueueSpacing(lambda _: None, timers.later)
    spacing.passing([status("a", 1)])
    timers.end("a")
    assert not timers.running
    spacing.passing([status("a", 2)])
    spacing.close()
    assert not timers.running
