"""Admitted groups whose pods do not exist: until when they claim capacity."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scheduler.trial import Trial
from volcano_py.scheduler.framework.jobs.empty_groups import CLAIM_SECONDS

GHOST = {"min": 2, "pods": 0, "minResources": {"cpu": 6}, "phase": "Inqueue"}
SHARES: list[list[Any]] = [["overcommit"], ["proportion"], ["capacity"]]


def trial(shares: list[Any], ghost: dict[str, Any] = GHOST, **settings: Any) -> Trial:
    """Another group of the same size waits on an otherwise empty cluster, in a queue that may hold one of them."""
    jobs = {"ghost": {**ghost, "queue": "q"}, "new": {"min": 2, "pods": 0, "minResources": {"cpu": 6}, "queue": "q"}}
    scenario = {"nodes": {"n1": {"cpu": 8}}, "queues": {"q": {"capability": {"cpu": 8}}}, "jobs": jobs}
    plugins: list[list[Any]] = [["gang"], ["predicates", *shares]]
    return Trial(scenario, plugins, "enqueue, allocate, backfill", **settings)


def admitted(made: Trial, name: str = "new") -> bool:
    return made.simulation.cluster.jobs[f"default/{name}"].pod_group.status.phase == "Inqueue"  # type: ignore[union-attr]


@pytest.mark.parametrize("shares", SHARES, ids=lambda shares: shares[0])
def test_the_claim_of_a_group_without_pods_ends(shares: list[Any]) -> None:
    made = trial(shares)
    for _ in range(3):
        made.cycle(50)
        assert not admitted(made)
    assert made.report.session.next_wake == made.report.session.now + CLAIM_SECONDS - 2 * 51
    made.cycle(CLAIM_SECONDS)
    assert admitted(made) and admitted(made, "ghost"), "it stays admitted"
    assert (
        "0 of 2 pods exist since more than 300 s: it claims no capacity until they exist" in made.messages("ghost")[0]
    )
    made.cycle()
    assert made.messages("ghost") == [], "it is stated once"


def test_the_claim_of_a_group_whose_pods_were_deleted_begins_to_end_then() -> None:
    made = trial(["proportion"], {**GHOST, "pods": 2, "each": {"cpu": 30}})
    made.cycle()
    made.cycle(2 * CLAIM_SECONDS)
    assert not admitted(made), "its pods exist"
    for name in ("ghost-0", "ghost-1"):
        made.simulation.drop("Pod", f"default/{name}")
    made.cycle()
    assert not admitted(made)
    made.cycle(CLAIM_SECONDS)
    assert admitted(made)


def test_some_pods_below_the_minimum_are_no_claim_either() -> None:
    made = trial(["proportion"], {**GHOST, "pods": 1, "each": {"cpu": 3}})
    made.cycle()
    made.cycle(CLAIM_SECONDS)
    assert admitted(made) and "1 of 2 pods exist" in made.messages("ghost")[0]


def test_in_volcano_the_claim_never_ends() -> None:
    made = trial(["proportion"], deviations="parity")
    for _ in range(4):
        made.cycle(CLAIM_SECONDS)
    assert not admitted(made)
