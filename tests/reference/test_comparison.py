"""The scheduler decides as the reference scheduler does, pod by pod, on random clusters.

REFERENCE_CASES=20000 pytest -m slow tests/reference     more clusters, and other ones with REFERENCE_SEED
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.reference.choice import OFTEN, TIMES, chosen, events_of
from tests.reference.comparison import DOCUMENTED, Case, decide_plainly, difference, is_open
from tests.reference.plugins import PLUGINS
from tests.reference.strategies import ALL_THEMES, OWN_THEMES, cases, each_another

FOUND = Path(__file__).parent / "found"
PAGE = Path(__file__).parents[2] / "docs" / "deviations.md"
QUICK = 24
QUICK_OF_THEME = 6
THOROUGH = int(os.environ.get("REFERENCE_CASES", "1000"))
SEED = int(os.environ.get("REFERENCE_SEED", "1"))
LEAST_BINDING = 0.3
LEAST_EVICTING = 0.2
LEAST_DECIDING = 0.1
LEAST_DECIDING_OF_THEME = 0.3
RULES_OF_THEME = {"volumes": ("predicates.VolumeBinding",)}
"""The rules that a theme is about, if it is not named after its plugin."""


def compare(
    count: int,
    seeded: int,
    binding: float,
    evicting: float,
    deciding: float,
    themes: tuple[str, ...] = ALL_THEMES,
    plugins: Iterable[str] = tuple(p for p in PLUGINS if p not in OWN_THEMES),
) -> None:
    """Compare `count` cases, and check that they are relevant: the minimum parts of them in which pods are bound and
    evicted, and in which each of the plugins decides."""
    seen: Counter[str] = Counter()

    @seed(seeded)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(cases(themes))
    def same(case: Case) -> None:
        if is_open(case):
            seen["left open by Volcano"] += 1
            return
        seen["cases"] += 1
        plain = decide_plainly(case)
        seen["bind"] += any(r.bound for r in plain)
        seen["evict"] += any(r.evicted for r in plain)
        seen.update({f"{plugin} decides" for r in plain for plugin in r.deciding})
        rare = {rarity for r in plain for rarity in r.rarities}
        seen.update(f"rare: {rarity}" for rarity in rare)
        found = difference(case, decided=plain)
        assert not found, found

    with each_another():
        same()
    total = seen["cases"]
    print(f"\n{total} cases; " + "; ".join(f"{what}: {n / total:.0%}" for what, n in sorted(seen.items())))
    assert seen["bind"] >= binding * total, "too few cases bind anything"
    assert seen["evict"] >= evicting * total, "too few cases evict a pod"
    for plugin in plugins:
        assert seen[f"{plugin} decides"] >= deciding * total, f"plugin {plugin} decides too little"


@pytest.mark.parametrize("case", chosen())
def test_a_chosen_cluster(case: Case) -> None:
    found = difference(case)
    assert not found, found


def test_every_rule_decides_something_in_the_chosen_clusters() -> None:
    seen = Counter(what for case in chosen() for what in events_of(case))
    assert [plugin for plugin in PLUGINS if seen[f"{plugin} decides"] < TIMES] == []
    assert {what: seen[what] for what, often in OFTEN.items() if seen[what] < often} == {}


def test_a_few_clusters() -> None:
    compare(QUICK, SEED, 0, 0, 0)  # the examples depend on the loaded modules


@pytest.mark.parametrize("theme", OWN_THEMES)
def test_a_few_clusters_of_a_theme(theme: str) -> None:
    compare(QUICK_OF_THEME, SEED, 0, 0, 0, (theme,))


@pytest.mark.slow
def test_many_clusters() -> None:
    compare(THOROUGH, SEED + 1, LEAST_BINDING, LEAST_EVICTING, LEAST_DECIDING)


@pytest.mark.slow
@pytest.mark.parametrize("theme", OWN_THEMES)
def test_many_clusters_of_a_theme(theme: str) -> None:
    rules = RULES_OF_THEME.get(theme, (theme,))
    compare(THOROUGH // 5, SEED + 1, LEAST_BINDING, 0, LEAST_DECIDING_OF_THEME, (theme,), rules)


@pytest.mark.parametrize("path", sorted(FOUND.glob("*.json")), ids=lambda p: p.stem)
def test_an_earlier_difference(path: Path) -> None:
    case = json.loads(path.read_text())
    assert case["name"] == path.stem.replace("-", " ") and case["sentence"].endswith(".")
    found = difference(case, known=())
    if path.stem in DOCUMENTED:
        assert f"## {path.stem}" in PAGE.read_text() and found, f"the scheduler decides as the rules: {path.stem}"
    else:
        assert not found, f"{case['sentence']} {found}"
