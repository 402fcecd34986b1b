"""A log of changed names, for readers that read it at different times. Not in Volcano."""

from __future__ import annotations

from collections.abc import Iterable


class Changes:
    """Names in the order in which they changed; each reader stores its own position."""

    __slots__ = ("_limit", "_names", "_start")

    def __init__(self, limit: int = 200_000) -> None:
        self._names: list[str] = []
        self._start = 0
        self._limit = limit

    @property
    def position(self) -> int:
        return self._start + len(self._names)

    def add(self, name: str) -> None:
        self._names.append(name)
        if len(self._names) > self._limit:
            self._drop()

    def add_all(self, names: Iterable[str]) -> None:
        self._names.extend(names)
        if len(self._names) > self._limit:
            self._drop()

    def _drop(self) -> None:
        dropped = len(self._names) // 2
        del self._names[:dropped]
        self._start += dropped

    def since(self, position: int) -> set[str] | None:
        """The names that changed after `position`; None if the log no longer reaches back so far."""
        if position < self._start:
            return None
        return set(self._names[position - self._start :])
