"""The plots of docs/decisions-over-time.md, from the results of two jobs."""

from __future__ import annotations

import pytest

from benchmarks.batch_plots import allocation, shares, waits
from benchmarks.batch_traces import HOUR, batch_trace
from benchmarks.reservations import with_exact_limits
from volcano_py.simulate.trace.engine import Outcome, Sample
from volcano_py.simulate.trace.jobs import TraceJob

JOBS = [
    TraceJob("a", 0.0, HOUR, "ann", 1, {"cpu": 1000, "memory": 0}, (), None, ""),
    TraceJob("b", 0.0, HOUR, "bob", 1, {"cpu": 1000, "memory": 0}, (), None, ""),
]


def outcome() -> Outcome:
    """One core: b waits for a, and half of the core is held for the last hour."""
    samples = [
        Sample(0.0, {"cpu": 1000}, 1, 1, 0),
        Sample(HOUR, {"cpu": 500}, 0, 1, 0, held_idle=500.0),
        Sample(2 * HOUR, {"cpu": 0}, 0, 0, 0),
    ]
    return Outcome({"cpu": 1000}, {"a": 0.0, "b": HOUR}, {"a": HOUR, "b": 2 * HOUR}, samples=samples)


def lines(text: str) -> list[list[tuple[float, float]]]:
    """The points of the lines of an SVG, with the vertical axis upwards from the panel's bottom at 0 to 180."""
    found = []
    for part in text.split('points="')[1:]:
        points = [tuple(map(float, point.split(","))) for point in part.partition('"')[0].split()]
        found.append([(x, y) for x, y in points])
    return found


def test_allocation_shows_what_is_allocated_and_what_is_held() -> None:
    used, held = lines(allocation({"today": outcome()}))
    first, second = used[7][1], used[22][1]  # half an hour, one hour and a half, of 20 hours in 300 steps
    assert first == pytest.approx(30) and second == pytest.approx(120) and used[-1][1] == pytest.approx(210)
    assert held[7][1] == pytest.approx(210) and held[22][1] == pytest.approx(120)


def test_waits_by_size_and_shares_of_users() -> None:
    many = JOBS * 10
    drawn = waits(many, {"today": {"a": 0.0, "b": HOUR}})
    assert "the largest 5 %" in drawn and "the smallest half" in drawn and drawn.count("<polyline") == 2
    ann, bob = lines(shares(JOBS, {"today": outcome()}))
    assert ann[7][1] < bob[7][1], "in the first hour only ann has used anything, and the line is above"
    assert abs(ann[-1][1] - bob[-1][1]) < 5, "in the end both have used the same"


def test_exact_limits_are_the_run_times() -> None:
    text = with_exact_limits(batch_trace(1, 0.9, jobs=20))
    rows = [line.split() for line in text.splitlines() if not line.startswith(";")]
    assert len(rows) == 20 and all(row[8] == row[3] and len(row) == 18 for row in rows)
