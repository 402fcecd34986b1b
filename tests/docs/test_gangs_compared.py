"""docs/gangs-compared.md: what its texts say is what both decide."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import yaml

from volcano_py.api.yaml_documents import FAST_LOADER

DOCS = Path(__file__).parents[2] / "docs"
sys.path.insert(0, str(DOCS))

import gangs_compared  # noqa: E402

Rows = dict[str, str]
SCENARIOS = {s["name"]: s for s in yaml.load((DOCS / "gangs_compared.yaml").read_text(), FAST_LOADER)}
EXPECTED = {
    "Two gangs, capacity for one of them": ("3 of a", "3 of a"),
    "A gang that no free capacity and no eviction can serve": ("none", "none"),
    "A running gang and an urgent pod": ("1 of vip", "1 of vip"),
    "An owner of a share, and a team that uses it": ("2 of second", "none"),
    "Members of two sizes that fit in one arrangement only": ("4 of mixed", "none"),
    "A tree with two groups of four in one rack each": ("4 of g, 4 of h", "4 of g, 4 of h"),
    "A tree whose first group fits into each rack, and whose second into one": ("3 of g, 4 of h", "none"),
    "A gang whose members wait, and why": ("none", "none"),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_what_both_bind(name: str) -> None:
    scenario = SCENARIOS[name]
    ours, theirs = gangs_compared.of_session(scenario), gangs_compared.of_profile(scenario)
    assert (ours["Bound"], theirs["Bound"]) == EXPECTED[name]


def test_only_kube_scheduler_leaves_a_gang_below_its_minimum() -> None:
    scenario = SCENARIOS["A running gang and an urgent pod"]
    assert gangs_compared.of_session(scenario)["Evicted"] == "1 of extra"
    assert gangs_compared.of_profile(scenario)["Evicted"] == "1 of train"
