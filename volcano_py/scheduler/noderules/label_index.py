"""Label sets found by selector, and selectors found by label set, without matching each of them.

Most selectors require a certain value of some label. The result is a superset: the caller matches the rest. Volcano:
none; kube-scheduler matches every pod against every term.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Generic, TypeVar

from volcano_py.api.meta import LabelSelector

T = TypeVar("T")
Pair = tuple[str, str]


def required_pairs(selector: LabelSelector) -> list[list[Pair]]:
    """What a selector requires of certain labels: of each list, a matching set of labels has one pair."""
    found = [[pair] for pair in (selector.match_labels or {}).items()]
    for e in selector.match_expressions or ():
        if e.operator == "In":
            found.append([(e.key, value) for value in dict.fromkeys(e.values or ())])
    return found


def _count(lists: list[list[T]]) -> int:
    return sum(len(things) for things in lists)


class ByLabels(Generic[T]):
    """Things with labels."""

    def __init__(self) -> None:
        self._all: list[T] = []
        self._with: dict[Pair, list[T]] = {}

    def add(self, thing: T, labels: Mapping[str, str]) -> None:
        self._all.append(thing)
        for pair in labels.items():
            self._with.setdefault(pair, []).append(thing)

    def candidates(self, selector: LabelSelector | None) -> Iterable[T]:
        """The things that a selector can match, each once."""
        if selector is None:
            return ()
        choices: list[list[list[T]]] = [
            [self._with.get(pair, []) for pair in pairs] for pairs in required_pairs(selector)
        ]
        if not choices:
            return self._all
        fewest: list[list[T]] = min(choices, key=_count)
        return chain.from_iterable(fewest)


class BySelector(Generic[T]):
    """Things with a selector."""

    def __init__(self) -> None:
        self._wanting: dict[Pair, list[T]] = {}
        self._others: list[T] = []

    def add(self, thing: T, selector: LabelSelector | None) -> None:
        """Add a thing. A thing without a selector matches nothing and is never found."""
        if selector is None:
            return
        pairs = min(required_pairs(selector), key=len, default=None)
        if pairs is None:
            self._others.append(thing)
            return
        for pair in pairs:
            self._wanting.setdefault(pair, []).append(thing)

    def candidates(self, labels: Mapping[str, str]) -> Iterable[T]:
        """The things whose selector can match these labels, each once."""
        return chain(self._others, *(self._wanting[pair] for pair in labels.items() if pair in self._wanting))
