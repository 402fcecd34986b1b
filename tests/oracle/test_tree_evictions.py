"""What docs/native-gangs.md promises of evictions of trees, judged on random small clusters."""

from __future__ import annotations

import os
from datetime import date

import pytest

from tests.oracle.tree_evictions import ACTIONS_THAT_EVICT, Clash, clash, judge
from tests.oracle.trees import Case, Group

QUICK = 60
THOROUGH = int(os.environ.get("ORACLE_CASES", "1000"))
SEED = int(os.environ.get("ORACLE_SEED", date.today().strftime("%Y%m%d")))


def check(seed: int, count: int) -> None:
    broken, judged, evicted = [], 0, 0
    for number in range(count):
        given = clash(seed, number)
        for action in ACTIONS_THAT_EVICT if given is not None else ():
            assert given is not None
            wrong, some = judge(given, action)
            broken += [f"{seed} {number} {action}: {text}" for text in wrong]
            judged += 1
            evicted += some
    print(f"\n{judged} runs of seed {seed}, {evicted} with evictions")
    assert broken == []
    assert evicted >= count // 15, "too few runs evicted a pod"


def test_a_few_clusters_in_which_a_more_important_tree_arrives() -> None:
    check(1, QUICK)


@pytest.mark.slow
def test_many_clusters_in_which_a_more_important_tree_arrives() -> None:
    check(SEED, THOROUGH)


def test_the_oracle_finds_that_trees_are_broken_without_the_rule_for_whole_gangs() -> None:
    cases = (found for number in range(300) if (found := clash(1, number)) is not None)
    found = (judge(given, "gangpreempt", deviations={"whole-gangs": False})[0] for given in cases)
    assert any("is broken" in text for wrong in found for text in wrong)


# ---- the oracle on clusters whose answers are evident -------------------------------------------------------------


def full(least: int, *, whole: bool = False, never: bool = False) -> Clash:
    """Two nodes that two groups of the old tree fill; the new one needs one of them."""
    nodes = {"n0": (2, {"rack": "r1"}), "n1": (2, {"rack": "r2"})}
    below = [Group("a", 2, pods=2, running=["n0"] * 2), Group("b", 2, pods=2, running=["n1"] * 2)]
    new = Group("new", 1, below=[Group("c", 2, "rack", pods=2)])
    return Clash(Case(nodes, [Group("old", least, below=below), new]), {"old"} if whole else set(), never)


@pytest.mark.parametrize("action", ACTIONS_THAT_EVICT)
def test_the_policy_never_evicts_nothing(action: str) -> None:
    assert judge(full(1, never=True), action) == ([], False)


def test_a_group_that_the_tree_does_not_need_is_evicted_and_a_tree_of_the_mode_all_as_a_whole() -> None:
    assert judge(full(1), "gangpreempt") == ([], True)
    assert judge(full(1, whole=True), "gangpreempt") == ([], True)
