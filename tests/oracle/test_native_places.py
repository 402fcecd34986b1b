"""What docs/deviations.md#native-places promises of the order of native gangs, judged on random small clusters."""

from __future__ import annotations

import os
from datetime import date

import pytest

from tests.oracle.native_places import NATIVE, TREE, VOLCANO, Placed, drawn, expected, started

QUICK = 50
THOROUGH = int(os.environ.get("ORACLE_CASES", "1000"))
SEED = int(os.environ.get("ORACLE_SEED", date.today().strftime("%Y%m%d")))


def check(seed: int, count: int) -> None:
    broken, telling = [], 0
    for number in range(count):
        cpu, gangs = drawn(seed, number)
        found, wrong = started(cpu, gangs)
        wanted = expected(cpu, gangs)
        telling += wanted != expected(cpu, gangs, by_group=True)
        broken += [f"{seed} {number}: {text}" for text in wrong]
        if found != wanted:
            broken.append(f"{seed} {number}: {sorted(found)} started instead of {sorted(wanted)}: {cpu} CPUs, {gangs}")
    print(f"\n{count} clusters of seed {seed}: in {telling} the oldest pods decide")
    assert broken == []
    assert telling >= count // 10


def test_a_few_clusters_with_gangs_that_wait() -> None:
    check(1, QUICK)


@pytest.mark.slow
def test_many_clusters_with_gangs_that_wait() -> None:
    check(SEED, THOROUGH)


def test_without_the_rule_the_creation_of_the_groups_decides() -> None:
    for number in range(15):
        cpu, gangs = drawn(2, number)
        found, _ = started(cpu, gangs, "deviations: {native-places: false}\n")
        assert found == expected(cpu, gangs, by_group=True), number


@pytest.mark.parametrize(("kind", "first"), [(NATIVE, {"old"}), (TREE, {"old"}), (VOLCANO, {"other"})])
def test_a_group_that_was_created_again_keeps_the_place_of_its_oldest_pod(kind: str, first: set[str]) -> None:
    gangs = [Placed("old", kind, 9, [1, 8]), Placed("other", NATIVE, 5, [6, 7])]
    assert expected(2, gangs) == first
    assert started(2, gangs) == (first, [])
