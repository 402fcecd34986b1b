"""A binary heap with a `less`, as Volcano's: elements are compared only when one is pushed or popped."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

T = TypeVar("T")


class Heap(Generic[T]):
    def __init__(self, less: Callable[[T, T], bool], items: Iterable[T] = ()) -> None:
        self.less = less
        self.items: list[T] = []
        for item in items:
            self.push(item)

    def __len__(self) -> int:
        return len(self.items)

    def clone(self) -> Heap[T]:
        copy = Heap(self.less)
        copy.items = list(self.items)
        return copy

    def push(self, item: T) -> None:
        self.items.append(item)
        child = len(self.items) - 1
        while child > 0:
            parent = (child - 1) // 2
            if not self.less(self.items[child], self.items[parent]):
                break
            self._swap(child, parent)
            child = parent

    def pop(self) -> T:
        self._swap(0, len(self.items) - 1)
        item = self.items.pop()
        parent = 0
        while True:
            least = 2 * parent + 1
            if least >= len(self.items):
                return item
            if least + 1 < len(self.items) and self.less(self.items[least + 1], self.items[least]):
                least += 1
            if not self.less(self.items[least], self.items[parent]):
                return item
            self._swap(parent, least)
            parent = least

    def _swap(self, i: int, j: int) -> None:
        self.items[i], self.items[j] = self.items[j], self.items[i]
