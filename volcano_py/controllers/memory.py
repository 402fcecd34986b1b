"""Per-object memory of a process, until the object is deleted: reported messages, contents known to be stored.

Volcano has no equivalent: it repeats the Event or the read.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

MOST_OBJECTS = 100_000
"""Maximum number of objects. `forget` limits the number to the existing objects; this limit covers entries that are
added after the deletion of their object."""


class Memory(Generic[K, V]):
    """Values by the UID of an object and a key. A lost value only costs a repeated Event or a repeated read."""

    def __init__(self, most: int = MOST_OBJECTS) -> None:
        self._most = most
        self._objects: OrderedDict[str, dict[K, V]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._objects)

    def get(self, uid: str, key: K) -> V | None:
        return self._objects.get(uid, {}).get(key)

    def put(self, uid: str, key: K, value: V) -> None:
        """Store a value; above the limit the least recently updated object is dropped."""
        self._objects.setdefault(uid, {})[key] = value
        self._objects.move_to_end(uid)
        if len(self._objects) > self._most:
            self._objects.popitem(last=False)

    def drop(self, uid: str, key: K) -> None:
        """Drop one value of an object."""
        values = self._objects.get(uid, {})
        values.pop(key, None)
        if not values:
            self._objects.pop(uid, None)

    def forget(self, uid: str) -> None:
        """The object was deleted."""
        self._objects.pop(uid, None)
