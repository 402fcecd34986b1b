"""Arrangements of gangs with more members than the search changes decisions for."""

from __future__ import annotations

import pytest

from tests.scheduler.trial import Trial
from volcano_py.scheduler.actions.placing.arrangement import MOST_MEMBERS


def gang(pods: int, capacity: tuple[int, int]) -> Trial:
    """As many pods of 3 cpus as of 5, the small ones first, on two nodes."""
    nodes = {name: {"cpu": cpu, "pods": 5000} for name, cpu in zip("ab", capacity, strict=True)}
    tasks = {"s": {"pods": pods, "cpu": 3}, "t": {"pods": pods, "cpu": 5}}
    job = {"min": 2 * pods, "phase": "Inqueue", "tasks": tasks}
    found = Trial({"nodes": nodes, "jobs": {"g": job}}, [["gang"], ["predicates", "nodeorder"]])
    found.cycle()
    return found


@pytest.mark.parametrize("pods", (20, MOST_MEMBERS, 700))
def test_a_gang_of_any_size_is_placed_largest_first(pods: int) -> None:
    """In the order of its tasks, small pods are spread over both nodes."""
    assert len(gang(pods, (5 * pods, 3 * pods)).bound) == 2 * pods


@pytest.mark.parametrize("pods", (20, 700))
def test_a_gang_that_does_not_fit_ends_the_search_without_a_fault(pods: int) -> None:
    """The sum of the free amounts is enough, and one cpu is lost on the small node."""
    assert gang(pods, (8 * pods - 4, 4)).bound == set()
