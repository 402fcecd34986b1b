"""The defaults come to rest, and every gang that only parity places waits for the reason of a deviation: compared over
random clusters. tests/oracle judges which gangs are entitled."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.reference.defaults import Table, run, waiting_groups
from tests.reference.drawing import drawn
from volcano_py.scheduler.framework.deviations import DEFAULT, Deviations

FOUND = Path(__file__).parent / "found"

CLUSTERS = int(os.environ.get("REFERENCE_CASES", "250"))
SEED = int(os.environ.get("REFERENCE_SEED", "1"))


def check(count: int) -> None:
    table = Table()
    for case in drawn(count, SEED):
        table.add(case)
    print("\n" + "\n".join(table.lines()))
    assert not table.endless, "evictions do not end; save the case and run it with tests.reference.defaults"
    assert not table.only_parity["other"]
    assert table.gangs["defaults"] and table.evictions["defaults"], "no gang is placed or no pod is evicted"
    assert table.restless["parity"] or count < 200, "the clusters are too easy: even parity comes to rest"


def test_a_few_clusters() -> None:
    check(12)


@pytest.mark.parametrize("name", ("evictions-for-pods-that-nothing-places", "queues-that-reclaim-from-each-other"))
def test_a_job_whose_evictions_have_no_lasting_effect_backs_off(name: str) -> None:
    case = json.loads((FOUND / f"{name}.json").read_text())
    assert run(case, DEFAULT).at_rest
    # whole-gang-reclaim does not permit their evictions, so that they come to rest without a back-off, too.
    assert run(case, Deviations(eviction_back_off=False)).at_rest
    if name.startswith("evictions"):
        assert not run(case, Deviations(eviction_back_off=False, whole_gang_reclaim=False)).at_rest


@pytest.mark.parametrize(
    "name",
    (
        "single-pod-that-makes-room",
        "single-pod-without-a-budget",
        "single-pod-of-a-subgroup",
    ),
)
def test_an_entitled_gang_does_not_wait(name: str) -> None:
    """Only one of the pods above a minimum serves the gang: the others are protected, on a node that stays too full, or
    needed by their subgroup."""
    case = json.loads((FOUND / f"{name}.json").read_text())
    outcome = run(case, DEFAULT)
    assert outcome.evictions and all(outcome.ready(group) for group in waiting_groups(case) if "/c" in group)


@pytest.mark.slow
def test_many_clusters() -> None:
    check(CLUSTERS)
