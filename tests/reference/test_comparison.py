"""The scheduler decides as the plain one does, pod by pod, on clusters nobody thought of.

REFERENCE_CASES=20000 pytest -m slow tests/reference     more of them, and other ones with REFERENCE_SEED
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.reference.choice import OFTEN, TIMES, chosen, happenings
from tests.reference.comparison import KNOWN, Case, decide_plainly, difference, is_open
from tests.reference.plugins import PLUGINS
from tests.reference.strategies import cases, each_another

FOUND = Path(__file__).parent / "found"
QUICK = 24
THOROUGH = int(os.environ.get("REFERENCE_CASES", "1000"))
SEED = int(os.environ.get("REFERENCE_SEED", "1"))
LEAST_BINDING = 0.3
LEAST_EVICTING = 0.2
LEAST_SAID = 0.1


def compare(count: int, seeded: int, binding: float, evicting: float, said: float) -> None:
    """Compare on `count` cases, and see to it that they were worth it: in so many at least pods are bound and evicted,
    and each plugin is heard."""
    seen: Counter[str] = Counter()

    @seed(seeded)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(cases())
    def same(case: Case) -> None:
        if is_open(case):
            seen["left open by Volcano"] += 1
            return
        seen["cases"] += 1
        plain = decide_plainly(case)
        seen["bind"] += any(r.bound for r in plain)
        seen["evict"] += any(r.evicted for r in plain)
        seen.update({f"{plugin} says" for r in plain for plugin in r.said})
        rare = {rarity for r in plain for rarity in r.rarities}
        seen.update(f"rare: {rarity}" for rarity in rare)
        told = difference(case)
        assert not told, told

    with each_another():
        same()
    total = seen["cases"]
    print(f"\n{total} cases; " + "; ".join(f"{what}: {n / total:.0%}" for what, n in sorted(seen.items())))
    assert seen["bind"] >= binding * total, "too few cases bind anything"
    assert seen["evict"] >= evicting * total, "too few cases evict anybody"
    for plugin in PLUGINS:
        assert seen[f"{plugin} says"] >= said * total, f"plugin {plugin} has too little to say"


@pytest.mark.parametrize("case", chosen())
def test_a_chosen_cluster(case: Case) -> None:
    found = difference(case)
    assert not found, found


def test_every_rule_decides_something_in_the_chosen_clusters() -> None:
    seen = Counter(what for case in chosen() for what in happenings(case))
    assert [plugin for plugin in PLUGINS if seen[f"{plugin} decides"] < TIMES] == []
    assert {what: seen[what] for what, often in OFTEN.items() if seen[what] < often} == {}


def test_a_few_clusters() -> None:
    compare(QUICK, SEED, 0, 0, 0)  # what is drawn depends on the loaded modules, so nothing is expected of it


@pytest.mark.slow
def test_many_clusters() -> None:
    compare(THOROUGH, SEED + 1, LEAST_BINDING, LEAST_EVICTING, LEAST_SAID)


@pytest.mark.parametrize("path", sorted(FOUND.glob("*.json")), ids=lambda p: p.stem)
def test_what_was_found_before(path: Path, request: pytest.FixtureRequest) -> None:
    if path.stem in KNOWN:
        request.applymarker(pytest.mark.xfail(reason=KNOWN[path.stem], strict=True))
    case = json.loads(path.read_text())
    assert case["name"] == path.stem.replace("-", " ") and case["sentence"].endswith(".")
    found = difference(case, known=())
    assert not found, f"{case['sentence']} {found}"
