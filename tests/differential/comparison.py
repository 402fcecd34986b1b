"""Compares the answers of both front ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.differential.clusters import Manifest
from tests.differential.front_ends import RULES, of_profile, of_session

LARGEST = 1.0
"""Scores differ by less: a profile rounds each of them down, the session does not."""


def differences(objects: Sequence[Manifest]) -> Iterator[tuple[str, str]]:
    """What differs, and how: the nodes that fit, and each score."""
    for i, rule in enumerate(RULES):
        session, profile = of_session(objects, rule), of_profile(objects, rule)
        if i == 0 and session.keys() != profile.keys():
            yield "filters", f"session {sorted(session)}, profile {sorted(profile)}"
            return
        if not session:
            continue
        # A score that is equal for all nodes decides nothing; a profile then leaves it out.
        least, lowest = min(session.values()), min(profile.values())
        wrong = {n: (s, profile[n]) for n, s in session.items() if abs(s - least - profile[n] + lowest) >= LARGEST}
        if wrong:
            yield rule.argument, f"node: session, profile: {wrong}"
