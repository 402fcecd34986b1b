"""Heaps that behave as Volcano's: elements are compared only when one is pushed or popped. Volcano: PriorityQueue.

`PriorityQueue` takes a comparison, for elements that are compared in pairs and whose order changes while they wait
(queues, victims). It is the same binary heap as Volcano's, so that elements whose order has changed are popped in the
same sequence. Jobs and tasks, whose order is a sort key, use `heapq` with the key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class PriorityQueue(Generic[T]):
    """A binary heap with the order `less`. `items`: the list that stores the heap."""

    def __init__(self, less: Callable[[T, T], bool], items: list[T] | None = None) -> None:
        self._less = less
        self._items: list[T] = [] if items is None else items

    def __len__(self) -> int:
        return len(self._items)

    def __bool__(self) -> bool:
        return bool(self._items)

    def __iter__(self) -> Iterator[T]:
        """In no order."""
        return iter(self._items)

    def push(self, item: T) -> None:
        items, less = self._items, self._less
        items.append(item)
        j = len(items) - 1
        while j > 0:
            i = (j - 1) // 2
            if not less(items[j], items[i]):
                break
            items[i], items[j] = items[j], items[i]
            j = i

    def pop(self) -> T:
        """Remove and return the first element. Raises IndexError when empty."""
        items, less = self._items, self._less
        n = len(items) - 1
        items[0], items[n] = items[n], items[0]
        i = 0
        while True:
            left = 2 * i + 1
            if left >= n:
                break
            j = left
            if left + 1 < n and less(items[left + 1], items[left]):
                j = left + 1
            if not less(items[j], items[i]):
                break
            items[i], items[j] = items[j], items[i]
            i = j
        return list.pop(items)
