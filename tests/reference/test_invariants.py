"""The invariants hold, in parity and with the deviations, on the clusters that are compared."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.reference.comparison import Case
from tests.reference.full_clusters import FULL_THEMES
from tests.reference.invariants import check_cycles, check_discard
from tests.reference.strategies import ALL_THEMES, cases, each_another
from volcano_py.scheduler.framework.deviations import Deviations

FOUND = Path(__file__).parent / "found"
QUICK = 12
THOROUGH = int(os.environ.get("REFERENCE_CASES", "400"))
SEED = int(os.environ.get("REFERENCE_SEED", "1"))
LONG = 8
"""Cycles in which jobs could evict each other in turn."""
LEAST_EVICTING = 0.1
LEAST_ENTITLED = 0.08
"""With the deviations: in fewer clusters a queue is entitled to evictions."""


def check(count: int, parity: bool, themes: tuple[str, ...], least_evicting: float) -> None:
    evicting = 0
    steps = 0

    @seed(SEED)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(cases(themes))
    def hold(case: Case) -> None:
        nonlocal evicting, steps
        evicting += check_cycles(case, case["cycles"] if parity else LONG, parity) > 0
        steps += check_discard(case, parity)

    with each_another():
        hold()
    print(f"\n{evicting / count:.0%} of {count} cases evict; {steps} steps undone")
    assert evicting >= least_evicting * count, "too few cases evict a pod"
    assert steps >= count or not least_evicting, "too few steps are undone"


@pytest.mark.parametrize("parity", (True, False), ids=("parity", "deviations"))
def test_a_few_clusters(parity: bool) -> None:
    check(QUICK, parity, FULL_THEMES, least_evicting=0)  # so few examples may evict nothing


def test_backfill_leaves_pods_the_capacity_of_their_victims() -> None:
    case = json.loads((FOUND / "nomination-of-a-best-effort-pod.json").read_text())
    on = Deviations(whole_gang_reclaim=False)  # no queue is entitled to evictions for a pod that requests nothing
    assert check_cycles(case, LONG, parity=False, on=on)


def test_whole_gangs_that_are_evicted_stay_within_a_budget_together() -> None:
    case = json.loads((FOUND / "budget-over-several-gangs-that-reclaim-evicts.json").read_text())
    assert check_cycles(case, LONG, parity=False)


def test_the_guarantee_of_an_inner_queue_includes_the_queues_below_it() -> None:
    assert check_cycles(json.loads((FOUND / "guarantee-of-an-inner-queue.json").read_text()), LONG, parity=False)


@pytest.mark.slow
@pytest.mark.parametrize("parity", (True, False), ids=("parity", "deviations"))
def test_many_clusters(parity: bool) -> None:
    check(THOROUGH, parity, ALL_THEMES, LEAST_EVICTING if parity else LEAST_ENTITLED)
