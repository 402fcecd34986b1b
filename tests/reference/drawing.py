"""Random cases as a list, without hypothesis' search for a counterexample."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.reference.comparison import Case
from tests.reference.full_clusters import FULL_THEMES
from tests.reference.strategies import cases, each_another


def drawn(count: int, number: int, themes: tuple[str, ...] = FULL_THEMES) -> list[Case]:
    """The first cases of a seed."""
    found: list[Case] = []

    @seed(number)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(cases(themes))
    def keep(case: Case) -> None:
        found.append(case)

    with each_another():
        keep()
    return found
