"""Log lines about the results of operations."""

from __future__ import annotations

import logging

import pytest

from volcano_py.scheduler.dispatch.messages import Result
from volcano_py.scheduler.model.plan import PodGroupStatus
from volcano_py.scheduler.reporting import Reporter


class _Unused:
    """Accepts every call."""

    def __getattr__(self, name: str) -> object:
        return lambda *arguments: None


@pytest.mark.parametrize(
    ("message", "level"),
    [
        ('podgroups.scheduling.volcano.sh "g" not found', logging.DEBUG),
        ("the server could not find the requested resource", logging.WARNING),
    ],
)
def test_a_status_of_a_deleted_object_is_no_warning(caplog: pytest.LogCaptureFixture, message: str, level: int) -> None:
    unused = _Unused()
    unused.model = None  # type: ignore[attr-defined]
    reporter = Reporter(unused, unused, unused, unused, unused)  # type: ignore[arg-type]
    caplog.set_level(logging.DEBUG)
    reporter.result(PodGroupStatus("ns", "g", "uid", {}), Result(1, "failed", message))
    assert [record.levelno for record in caplog.records] == [level]
