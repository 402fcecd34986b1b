"""The promises of docs/promises.md for native and composite groups, by exhaustive search on random small clusters."""

from __future__ import annotations

import os
from datetime import date

import pytest

from tests.oracle.trees import Case, Group, could_hold, drawn, holds, judge, one_more_fits, violated

QUICK = 60
THOROUGH = int(os.environ.get("ORACLE_CASES", "1000"))
SEED = int(os.environ.get("ORACLE_SEED", date.today().strftime("%Y%m%d")))


def check(seed: int, count: int) -> None:
    broken, asked = [], 0
    for number in range(count):
        wrong, could = judge(drawn(seed, number))
        broken += [f"{seed} {number}: {text}" for text in wrong]
        asked += could
    print(f"\n{count} clusters of seed {seed}, {asked} trees that could start")
    assert broken == []
    assert asked >= count // 3, "too few trees could start"


def test_a_few_clusters_with_trees() -> None:
    check(1, QUICK)


@pytest.mark.slow
def test_many_clusters_with_trees() -> None:
    check(SEED, THOROUGH)


def test_the_oracle_finds_the_rule_that_is_turned_off() -> None:
    found = (judge(drawn(1, number), deviations={"what-fits-starts": False})[0] for number in range(400))
    assert any(found)


# ---- the oracle on clusters whose answers are evident -------------------------------------------------------------


def two_racks() -> Case:
    nodes = {"n0": (2, {"rack": "r1"}), "n1": (2, {"rack": "r2"})}
    below = [Group("a", 2, "rack", pods=2), Group("b", 2, "rack", pods=3)]
    return Case(nodes, [Group("t", 2, below=below)])


def test_the_oracle_finds_an_arrangement_and_misses_none() -> None:
    case = two_racks()
    assert could_hold(case, case.roots[0], {})
    case.roots[0].key = "rack"
    assert not could_hold(case, case.roots[0], {}), "both groups do not fit into one rack"
    case.roots[0].least = 1
    assert could_hold(case, case.roots[0], {})


def test_the_oracle_sees_pods_in_two_domains_and_pods_that_are_missing() -> None:
    case = two_racks()
    root = case.roots[0]
    assert violated(case, root, {"a": ["n0", "n1"]}) and not violated(case, root, {"a": ["n0"], "b": ["n1"]})
    assert holds(root, {"a": ["n0"] * 2, "b": ["n1"] * 2}) and not holds(root, {"a": ["n0"] * 2, "b": ["n1"]})
    assert one_more_fits(case, root, {"a": ["n0"], "b": ["n1"]}) == ""
    case.roots[0].below[0].least = 1
    assert one_more_fits(case, root, {"a": ["n0"]}) == "a on n0"
