"""The defaults place at least the entitled gangs, and come to rest: compared with parity over random clusters."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.reference.defaults import Table, run
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
    assert not table.starved, f"entitled gangs wait forever: {[group for _, group in table.starved]}"
    assert not table.only_parity["other"]
    assert table.gangs["defaults"] and table.evictions["defaults"], "no gang is placed or no pod is evicted"
    assert table.restless["parity"] or count < 200, "the clusters are too easy: even parity comes to rest"


def test_a_few_clusters() -> None:
    check(12)


@pytest.mark.parametrize("name", ("evictions-for-pods-that-nothing-places", "queues-that-reclaim-from-each-other"))
def test_a_job_whose_evictions_have_no_lasting_effect_backs_off(name: str) -> None:
    case = json.loads((FOUND / f"{name}.json").read_text())
    assert run(case, DEFAULT).at_rest
    assert not run(case, Deviations(eviction_back_off=False)).at_rest


@pytest.mark.parametrize(
    "name",
    (
        "single-pod-that-makes-room",
        "single-pod-without-a-budget",
        "single-pod-that-frees-a-place",
        "single-pod-of-a-subgroup",
    ),
)
def test_an_entitled_gang_does_not_wait(name: str) -> None:
    """Only one of the pods above a minimum serves the gang: the others are protected, on a node that stays too full, or
    needed by their subgroup."""
    assert run(json.loads((FOUND / f"{name}.json").read_text()), DEFAULT).entitled == []


@pytest.mark.slow
def test_many_clusters() -> None:
    check(CLUSTERS)
