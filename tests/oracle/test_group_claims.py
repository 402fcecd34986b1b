"""What docs/native-gangs.md promises of claims that a group shares, judged on random small clusters."""

from __future__ import annotations

import os
from collections import Counter
from datetime import date

import pytest

from tests.oracle.group_claims import ClaimCluster, ClaimGroup, ClaimOutcome, drawn, judge, play

QUICK = 50
THOROUGH = int(os.environ.get("ORACLE_CASES", "1000"))
SEED = int(os.environ.get("ORACLE_SEED", date.today().strftime("%Y%m%d")))


def check(seed: int, count: int) -> None:
    broken, seen = [], Counter[str]()
    for number in range(count):
        case = drawn(seed, number)
        found = play(case)
        broken += [f"{seed} {number}: {text}" for text in judge(case, found)]
        running = {pod.partition("-")[0] for pod in found.bound}
        kinds = {resource for consumers in found.consumers.values() for resource, _ in consumers}
        seen.update([*kinds, "waits" if len(running) < len(case.groups) else "all run"])
    print(f"\n{count} clusters of seed {seed}: {dict(seen)}")
    assert broken == []
    assert min(seen[kind] for kind in ("podgroups", "pods", "waits", "all run")) >= count // 10


def test_a_few_clusters_with_shared_claims() -> None:
    check(1, QUICK)


@pytest.mark.slow
def test_many_clusters_with_shared_claims() -> None:
    check(SEED, THOROUGH)


def test_the_oracle_finds_reservations_for_each_pod() -> None:
    cases = [drawn(1, number) for number in range(6)]
    wrong = [text for case in cases for text in judge(case, play(case, "deviations: {group-claims: false}\n"))]
    assert any("is reserved for [('pods'" in text for text in wrong)


# ---- the oracle on clusters whose answers are evident -------------------------------------------------------------


def two_nodes() -> ClaimCluster:
    group = ClaimGroup("g0", 2, 2, {"c0": "claim-0"}, {"c0"})
    return ClaimCluster({"n0": 1, "n1": 2}, {"n0": 1, "n1": 1}, {"claim-0": 1}, [group])


def test_the_node_that_has_room_for_all_is_used() -> None:
    found = play(two_nodes())
    assert found.bound == {"g0-0": "n1", "g0-1": "n1"}
    assert found.consumers == {"claim-0": [("podgroups", "g0")]}
    assert judge(two_nodes(), found) == []


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (ClaimOutcome({}, {"claim-0": []}, {"claim-0": []}, []), "g0 waits although n1 has room"),
        (
            ClaimOutcome({"g0-0": "n1"}, {"claim-0": [("n1", "d0")]}, {"claim-0": [("podgroups", "g0")]}, []),
            "g0 runs with 1 of 2 pods",
        ),
        (
            ClaimOutcome(
                {"g0-0": "n0", "g0-1": "n1"}, {"claim-0": [("n1", "d0")]}, {"claim-0": [("podgroups", "g0")]}, []
            ),
            "g0-0 is on n0, claim-0 has [('n1', 'd0')]",
        ),
        (
            ClaimOutcome(
                {"g0-0": "n1", "g0-1": "n1"}, {"claim-0": [("n1", "d0")]}, {"claim-0": [("podgroups", "g0")] * 2}, []
            ),
            "claim-0 is reserved for [('podgroups', 'g0'), ('podgroups', 'g0')], not for [('podgroups', 'g0')]",
        ),
        (ClaimOutcome({}, {"claim-0": [("n0", "d0")]}, {"claim-0": []}, []), "claim-0 holds [('n0', 'd0')] for no pod"),
    ],
)
def test_what_is_wrong_is_found(found: ClaimOutcome, text: str) -> None:
    assert text in judge(two_nodes(), found)
