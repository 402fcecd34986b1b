"""ColumnLog: which node columns changed, for readers that store how far they have read. Not in Volcano."""

from __future__ import annotations

from collections.abc import Iterable


class ColumnLog:
    """Changes are numbered; a reader stores `position` and later reads the changes `since` then."""

    __slots__ = ("_last", "position")

    def __init__(self) -> None:
        self.position = 0
        """The number of changes so far."""
        self._last: dict[int, int] = {}
        """The number of each changed column's last change, in the order of these numbers. Readers of a few columns that
        change again and again then read these few."""

    def add(self, node: int) -> None:
        """Record a change of a column."""
        self._last.pop(node, None)
        self._last[node] = self.position
        self.position += 1

    def add_all(self, nodes: Iterable[int]) -> None:
        """Record one change of each of several columns."""
        for node in nodes:
            self.add(node)

    def since(self, position: int) -> list[int]:
        """The columns that changed after a position, each once, the last change first."""
        found = []
        for node, number in reversed(self._last.items()):
            if number < position:
                break
            found.append(node)
        return found
