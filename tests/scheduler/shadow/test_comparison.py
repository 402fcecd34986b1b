"""The definition of agreement, of differences and of earlier starts, in virtual time."""

from __future__ import annotations

import math

from prometheus_client import CollectorRegistry

from volcano_py.scheduler.shadow import report
from volcano_py.scheduler.shadow.comparison import KEPT, Comparison, Earlier
from volcano_py.scheduler.shadow.metrics import ShadowMetrics
from volcano_py.scheduler.shadow.observed import PATIENCE
from volcano_py.scheduler.shadow.trial import Verdict

SETTLE = 3.0
SAME = Verdict(True, 2)
REJECTED = Verdict(False, 0, "QueueLimit", "the queue is full")


def clear(uid: str) -> bool:
    return False


def test_jobs_and_nodes_are_counted_separately() -> None:
    found = Comparison(SETTLE)
    found.evaluated("a", 10.0, 3, SAME)
    found.evaluated("b", 10.0, 1, REJECTED)
    assert found.outcomes == {"same": 1, "live-only": 1} and found.agreement == 0.5
    assert (found.pods, found.same_nodes) == (3, 2)
    (difference,) = found.differences
    assert (difference.job, difference.code, difference.why) == ("b", "QueueLimit", "the queue is full")


def test_a_job_of_ours_is_missed_when_the_settle_time_has_passed_without_binds() -> None:
    found = Comparison(SETTLE)
    found.decided({"a"}, clear, 10.0)
    assert found.overdue(12.9, 0.0, {}) == [] and found.overdue(13.0, 0.0, {}) == ["a"]
    assert found.overdue(13.0, 10.5, {}) == []  # the live scheduler still binds
    assert found.overdue(13.0, 0.0, {"a": 10.5}) == []  # its pods were just created
    assert found.overdue(10.0 + PATIENCE * SETTLE, 39.0, {}) == ["a"]
    found.miss("a", "it waits")
    assert found.overdue(60.0, 0.0, {}) == [] and found.outcomes == {"ours-only": 1}
    assert found.evaluated("a", 70.0, 1, SAME) == 60.0
    assert found.outcomes == {"ours-only": 1} and list(found.earlier) == [Earlier(70.0, "a", 60.0)]


def test_a_job_that_the_shadow_would_no_longer_start_is_not_missed() -> None:
    found = Comparison(SETTLE)
    found.decided({"a", "b"}, clear, 10.0)
    found.decided(set(), lambda uid: uid == "b", 11.0)
    assert found.overdue(20.0, 0.0, {}) == ["b"]
    assert found.evaluated("a", 20.0, 1, SAME) == 0.0 and found.earlier_jobs == 0


def test_less_than_the_settle_time_is_not_earlier() -> None:
    found = Comparison(SETTLE)
    found.decided({"a"}, clear, 10.0)
    assert found.evaluated("a", 12.9, 1, SAME) == 0.0 and found.earlier_jobs == 0


def test_only_the_newest_differences_are_kept() -> None:
    found = Comparison(SETTLE)
    for number in range(KEPT + 5):
        found.evaluated(f"j{number}", float(number), 1, REJECTED)
    assert len(found.differences) == KEPT and found.differences[0].job == "j5"
    assert found.outcomes["live-only"] == found.reasons["QueueLimit"] == KEPT + 5


def test_the_report_contains_the_differences() -> None:
    found = Comparison(SETTLE)
    found.decided({"c"}, clear, 10.0)
    found.evaluated("a", 20.0, 3, SAME)
    found.evaluated("b", 20.0, 1, REJECTED)
    found.evaluated("c", 20.0, 2, SAME)
    text = list(report.lines(found))
    assert text[0] == (
        "shadow: 66.7 % agreement over 3 jobs: 2 started by both, 1 by the live scheduler only, 0 by ours only"
    )
    assert "shadow: ours would have started 1 job earlier, by 10.0 s on average" in text
    assert "shadow: live-only b: QueueLimit: the queue is full" in text
    data = report.document(found, 0.0, 30.0)
    assert data["jobs"] == {"same": 2, "live-only": 1, "ours-only": 0} and data["reasons"] == {"QueueLimit": 1}
    assert data["earlier"]["jobs"] == [{"time": "1970-01-01T00:00:20Z", "job": "c", "seconds": 10.0}]


def test_an_empty_comparison_is_no_agreement() -> None:
    found = Comparison(SETTLE)
    assert found.agreement is None and found.node_agreement is None
    [line] = report.lines(found)
    assert "no job was compared yet, which is no agreement" in line and "100" not in line
    assert report.document(found, 0.0, 1.0)["agreement"] is None
    registry = CollectorRegistry()
    metrics = ShadowMetrics(registry)
    metrics.show(found)
    assert math.isnan(registry.get_sample_value("volcano_py_shadow_agreement") or 0.0)
    assert math.isnan(registry.get_sample_value("volcano_py_shadow_node_agreement") or 0.0)
