"""Suggestion: one change, or several together, after which a job starts."""

from __future__ import annotations

from dataclasses import dataclass, field

from volcano_py.simulate.unblock.trials import Edit


@dataclass(frozen=True)
class Change:
    """One action. `kind` is stable: free-capacity, wait-for-job, add-nodes, raise-limit, …"""

    kind: str
    text: str
    edits: list[Edit] = field(default_factory=list)


@dataclass(frozen=True)
class Suggestion:
    """Changes after which, together, the job starts in a simulated cycle."""

    changes: list[Change]

    @property
    def kind(self) -> str:
        """The kinds of the changes, for example `raise-limit + add-nodes`."""
        return " + ".join(c.kind for c in self.changes)

    @property
    def text(self) -> str:
        """The changes in one sentence."""
        return ", and ".join(c.text for c in self.changes)

    @property
    def edits(self) -> list[Edit]:
        return [e for c in self.changes for e in c.edits]
