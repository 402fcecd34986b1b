"""The clusters that every run compares: drawn once, and selected so that a few cover every rule.

    python -m tests.reference.choice [DRAWN [SEED]]
    python -m tests.reference.choice DRAWN SEED THEME

draws clusters, selects some of them, and writes `chosen.jsonl` again. With a theme, it keeps the clusters of the list
and adds some of the theme, with the events that the list lacks. The examples that hypothesis draws depend on the
loaded modules, so a test that expects something of its clusters uses a list.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.reference.comparison import Case, decide_plainly, difference, is_open
from tests.reference.strategies import ALL_THEMES, OWN_THEMES, cases, each_another

CHOSEN = Path(__file__).parent / "chosen.jsonl"
TIMES = 2
"""The number of clusters in which each rule must decide something; fewer if the drawn clusters do not have them."""
OFTEN = {"pods are bound": 10, "pods are evicted": 8}


def events_of(case: Case) -> set[str]:
    """The rules that decide something in a case, its rare events, and whether pods are bound and evicted."""
    plain = decide_plainly(case)
    found = {f"{rule} decides" for r in plain for rule in r.deciding} | {
        f"rare: {x}" for r in plain for x in r.rarities
    }
    found |= {"pods are bound"} if any(r.bound for r in plain) else set()
    return found | ({"pods are evicted"} if any(r.evicted for r in plain) else set())


def chosen() -> list[Case]:
    """The cases of the list."""
    return [json.loads(line) for line in CHOSEN.read_text().splitlines()]


def wanted(of: Sequence[set[str]]) -> Mapping[str, int]:
    """The number of cases that the list should have for each event."""
    return {what: min(n, OFTEN.get(what, TIMES)) for what, n in Counter(x for one in of for x in one).items()}


def choose(drawn: Sequence[tuple[Case, set[str]]], present: Sequence[set[str]] = ()) -> list[Case]:
    """Few and small cases with all required events: in each step the case that adds most for its size. `present`: the
    events of cases that are chosen already."""
    missing = Counter(wanted([what for _, what in drawn]))
    for what in present:
        missing.subtract(what)
    left = [(case, what, len(json.dumps(case))) for case, what in drawn]
    found = []
    while any(n > 0 for n in missing.values()):
        best = max(left, key=lambda row: sum(missing[x] > 0 for x in row[1]) / row[2])
        left.remove(best)
        missing.subtract(best[1])
        found.append(best[0])
    return found


def draw(count: int, seeded: int, themes: tuple[str, ...] = ALL_THEMES) -> list[tuple[Case, set[str]]]:
    drawn: list[tuple[Case, set[str]]] = []

    @seed(seeded)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(cases(themes))
    def keep(case: Case) -> None:
        if not is_open(case):
            assert not (found := difference(case)), found
            drawn.append((case, events_of(case)))

    with each_another():
        keep()
    return drawn


if __name__ == "__main__":
    numbers = [int(text) for text in sys.argv[1:3]]
    count, seeded = numbers + [1000, 7][len(numbers) :]
    themes = tuple(sys.argv[3:])
    kept = chosen() if themes else []
    of = draw(count, seeded, themes) if themes else draw(count, seeded) + draw(count // 10, seeded, OWN_THEMES)
    lines = [json.dumps(c, separators=(",", ":")) for c in kept + choose(of, [events_of(c) for c in kept])]
    CHOSEN.write_text("".join(f"{line}\n" for line in lines))
    print(f"{len(lines)} of {len(of)} clusters, {CHOSEN.stat().st_size // 1000} kB")
