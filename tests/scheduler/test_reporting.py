"""Log lines about the results of operations."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest

from volcano_py.scheduler.dispatch.messages import Result
from volcano_py.scheduler.model.plan import Bind, Operation, PodCondition, PodGroupStatus
from volcano_py.scheduler.runtime.reporting import MAX_DISTINCT_WARNINGS, REPEAT_AFTER, Repeated, Reporter


class _Unused:
    """Accepts every call."""

    def __getattr__(self, name: str) -> object:
        return lambda *arguments: None


def reporter() -> Reporter:
    unused = _Unused()
    unused.model = None  # type: ignore[attr-defined]
    return Reporter(unused, unused, unused, unused, unused)  # type: ignore[arg-type]


GROUP = PodGroupStatus("ns", "g", "uid", {})
BIND = Bind("ns", "p", "uid", "n0", "ns/g")


@pytest.mark.parametrize(
    ("op", "message", "level"),
    [
        (GROUP, 'podgroups.scheduling.volcano.sh "g" not found', logging.DEBUG),
        (GROUP, "the server could not find the requested resource", logging.WARNING),
        (BIND, 'pods "p" not found', logging.DEBUG),
        (BIND, "pod ns/p of uid uid was deleted", logging.DEBUG),
        (BIND, "unable to create new content in namespace ns because it is being terminated", logging.DEBUG),
        (BIND, 'nodes "n0" not found', logging.WARNING),
    ],
)
def test_a_write_that_comes_too_late_is_no_warning(
    caplog: pytest.LogCaptureFixture, op: Operation, message: str, level: int
) -> None:
    caplog.set_level(logging.DEBUG)
    reporter().result(op, Result(1, "failed", message))
    assert [record.levelno for record in caplog.records] == [level]


def test_a_reason_of_many_objects_is_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    under_test = reporter()
    for i in range(50):
        op = PodCondition("ns", f"p{i}", f"u{i}", "Unschedulable", "no capacity")
        under_test.result(op, Result(i, "failed", f'pods "p{i}" is forbidden: not you'))
    under_test.result(op, Result(51, "failed", "another reason"))
    assert [record.getMessage().partition(";")[0] for record in caplog.records] == [
        'PodCondition of ns/p0: pods "p0" is forbidden: not you',
        "PodCondition of ns/p49: another reason",
    ]


def test_a_repeated_line_is_written_again_after_ten_minutes_with_the_number_of_those_left_out() -> None:
    lines = Repeated()
    assert [lines.seen("a", now) for now in (0.0, 1.0, 2.0)] == [0, None, None]
    assert lines.seen("b", 3.0) == 0
    assert lines.seen("a", REPEAT_AFTER) == 2
    for i in range(2 * MAX_DISTINCT_WARNINGS):
        assert lines.seen(f"reason {i}", 2 * REPEAT_AFTER + i) == 0
    assert len(lines._lines) <= MAX_DISTINCT_WARNINGS


def test_audit_lines_of_a_cycle_that_is_written_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "volcano_py.scheduler.runtime.reporting")
    session = SimpleNamespace(audit=["fairshare: job a started before b"])
    report = SimpleNamespace(session=session, bound=1, evicted=0, warnings=[], faults=[])
    reporter().cycle(7, report, 0.1, written=False)  # type: ignore[arg-type]
    assert "fairshare: job a started before b" not in caplog.messages
    reporter().cycle(8, report, 0.1)  # type: ignore[arg-type]
    assert "fairshare: job a started before b" in caplog.messages
