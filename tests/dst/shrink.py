"""From a run that fails to a smaller one that fails in the same way: fewer steps, faults and actions of users."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from tests.dst.run import Outcome, Plan

Play = Callable[[Plan], Outcome]


def kind_of(violation: str) -> str:
    """What is wrong, without times, names and numbers."""
    text = violation.partition(" s: ")[2] or violation
    text = re.sub(r"'[^']*'|\(.*\)|\S*[/.]\S*|\b\w*\d[\w-]*", "#", text)
    return re.sub(r"(#[\s,;:]*)+", "# ", text)[:60]


def kinds_of(outcome: Outcome) -> set[str]:
    return {kind_of(text) for text in outcome.violations}


class Shrinking:
    """Tries smaller plans, at most `most` of them."""

    def __init__(self, failed: Outcome, play: Play, most: int = 80) -> None:
        self.best = failed
        self.tries = 0
        self._wanted = kind_of(failed.violations[0])
        self._play = play
        self._most = most

    def run(self) -> Outcome:
        """The smallest run that was found."""
        self._steps()
        self._faults()
        self._parts(lambda outcome: outcome.keys)
        self._parts(lambda outcome: outcome.steps)
        return self.best

    def _fails(self, plan: Plan) -> bool:
        if self.tries >= self._most:
            return False
        self.tries += 1
        outcome = self._play(plan)
        if self._wanted not in kinds_of(outcome):
            return False
        self.best = outcome
        return True

    def _steps(self) -> None:
        """Fewer steps: the end of the run is often not needed."""
        few, many = 0, self.best.plan.steps
        while many - few > 5:
            middle = (few + many) // 2
            if self._fails(replace(self.best.plan, steps=middle)):
                many = middle
            else:
                few = middle

    def _faults(self) -> None:
        """Without whole kinds of faults."""
        names = sorted({key.partition("|")[0] for key in self.best.keys})
        kept = list(names)
        size = len(names)
        while size:
            for i in range(0, len(kept), size):
                fewer = [*kept[:i], *kept[i + size :]]
                if self._fails(replace(self.best.plan, only=frozenset(fewer))):
                    kept = fewer
                    break
            else:
                size //= 2

    def _parts(self, of: Callable[[Outcome], Sequence[str]]) -> None:
        """Without single injections, or single steps of users: halves first."""
        size = max(1, len(of(self.best)) // 2)
        while True:
            parts = list(of(self.best))
            for i in range(0, len(parts), size):
                without = self.best.plan.disabled | frozenset(parts[i : i + size])
                if self._fails(replace(self.best.plan, disabled=without)):
                    break
            else:
                if size == 1:
                    return
                size = max(1, size // 2)
            if self.tries >= self._most:
                return
