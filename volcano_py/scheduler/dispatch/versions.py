"""resourceVersions of objects whose status the dispatcher writes. Volcano: UpdateStatus sends the object's own.

A status is based on one version of the object, and is written only if the object has not changed since. The decider may
decide again before its watch returns the last write of this dispatcher. If no other client has changed the object, the
newer version is then used as the guard.
"""

from __future__ import annotations

from collections import OrderedDict

MAX_OBJECTS = 20_000
"""Number of objects whose last write is kept; a dropped one results in at most one conflict."""
MAX_BASES = 16
"""Number of versions that are kept of one object."""

Key = tuple[str, str, str]


class Versions:
    """The sequence of versions that this dispatcher has written of each object."""

    def __init__(self) -> None:
        self._chains: OrderedDict[Key, list[str]] = OrderedDict()

    def guard(self, key: Key, decided_from: str) -> str:
        """The version of the object if only this dispatcher has changed it; empty if `decided_from` is empty."""
        chain = self._chains.get(key)
        return chain[-1] if chain is not None and decided_from in chain else decided_from

    def forget(self, key: Key) -> None:
        """Drop the sequence after a conflict: what this dispatcher wrote last is not the object's version."""
        self._chains.pop(key, None)

    def wrote(self, key: Key, guard: str, made: str) -> None:
        """Record that a write with the guard `guard` resulted in version `made`."""
        if not guard:
            return
        chain = self._chains.get(key)
        if chain is None or chain[-1] != guard:
            chain = self._chains[key] = [guard]
        if made and made != guard:
            chain.append(made)
            del chain[:-MAX_BASES]
        self._chains.move_to_end(key)
        if len(self._chains) > MAX_OBJECTS:
            self._chains.popitem(last=False)
