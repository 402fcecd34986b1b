"""Sessions that skip settled jobs decide and report as sessions that evaluate all jobs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scheduler.churn import CONF, plans
from volcano_py.scheduler.framework.jobs.session_jobs import SettledJobs

PROPORTION: list[Any] = CONF["plugins"]
CAPACITY: list[Any] = [
    ["priority", "gang", "conformance", "sla"],
    ["drf", "predicates", {"capacity": {"enableHierarchy": True}}, "nodeorder", "binpack"],
]
TIERS = {"proportion": PROPORTION, "capacity": CAPACITY}


def check(seed: int, cycles: int, tiers: list[Any]) -> None:
    """Compare two histories cycle by cycle; in one of them every session evaluates all jobs."""
    skipped: list[int] = []

    def evaluate_all(kept: SettledJobs) -> None:
        kept.__init__()  # type: ignore[misc]

    usual = plans(seed, cycles, tiers=tiers, settled=lambda kept: skipped.append(len(kept.settled)))
    scratch = plans(seed, cycles, tiers=tiers, settled=evaluate_all)
    for cycle, (left, right) in enumerate(zip(usual, scratch, strict=True)):
        assert left == right, f"cycle {cycle} of seed {seed}"
    assert len(skipped) == cycles and sum(skipped) > 2 * cycles, "too few jobs are settled"


@pytest.mark.parametrize("tiers", TIERS)
def test_forty_cycles(tiers: str) -> None:
    check(3, 40, TIERS[tiers])


@pytest.mark.slow
@pytest.mark.parametrize("tiers", TIERS)
def test_two_hundred_and_fifty_cycles(tiers: str) -> None:
    check(1, 250, TIERS[tiers])
