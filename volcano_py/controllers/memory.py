"""What a process remembers about objects, for as long as they exist: reported messages, contents known to be stored.

Volcano has nothing like it: it repeats the Event or the read.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

MOST_OBJECTS = 100_000
"""Objects that are remembered. `forget` keeps the number at that of the objects in the cluster; this bound holds for
what is noted after an object was deleted."""


class Memory(Generic[K, V]):
    """Values by the UID of an object and a key. Losing one costs a repeated Event or a repeated read, nothing else."""

    def __init__(self, most: int = MOST_OBJECTS) -> None:
        self._most = most
        self._objects: OrderedDict[str, dict[K, V]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._objects)

    def get(self, uid: str, key: K) -> V | None:
        return self._objects.get(uid, {}).get(key)

    def put(self, uid: str, key: K, value: V) -> None:
        """Remember a value; beyond the bound the object that was noted least recently is forgotten."""
        self._objects.setdefault(uid, {})[key] = value
        self._objects.move_to_end(uid)
        if len(self._objects) > self._most:
            self._objects.popitem(last=False)

    def drop(self, uid: str, key: K) -> None:
        """Forget one value of an object."""
        values = self._objects.get(uid, {})
        values.pop(key, None)
        if not values:
            self._objects.pop(uid, None)

    def forget(self, uid: str) -> None:
        """The object was deleted."""
        self._objects.pop(uid, None)
