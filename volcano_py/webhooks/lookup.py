"""What the rules ask about queues that exist already, and an answer made from a list of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from volcano_py.api.scheduling import ROOT_QUEUE

Manifest = Mapping[str, Any]
"""An object as plain JSON."""


class Queues(Protocol):
    """The queues of the cluster, as they are before the request."""

    def get(self, name: str) -> Manifest | None:
        """The queue of this name."""

    def children(self, name: str) -> Sequence[Manifest]:
        """The queues whose `spec.parent` is `name`; without a parent a queue is a child of root."""

    def all(self) -> Iterable[Manifest]:
        """Every queue."""


class QueueIndex:
    """`Queues` from a collection of manifests; `put` and `remove` keep it up to date."""

    def __init__(self, queues: Iterable[Manifest] = ()) -> None:
        self._queues: dict[str, Manifest] = {}
        self._children: dict[str, dict[str, Manifest]] = {}
        for queue in queues:
            self.put(queue)

    def put(self, queue: Manifest) -> None:
        name = queue["metadata"].get("name", "")
        self.remove(name)
        self._queues[name] = queue
        self._children.setdefault(parent_of(queue), {})[name] = queue

    def remove(self, name: str) -> None:
        old = self._queues.pop(name, None)
        if old is not None:
            del self._children[parent_of(old)][name]

    def get(self, name: str) -> Manifest | None:
        return self._queues.get(name)

    def children(self, name: str) -> Sequence[Manifest]:
        return list(self._children.get(name, {}).values())

    def all(self) -> Iterable[Manifest]:
        return list(self._queues.values())


def parent_of(queue: Manifest) -> str:
    """The parent's name: root where none is given, nothing for root itself."""
    if queue["metadata"].get("name") == ROOT_QUEUE:
        return ""
    return (queue.get("spec") or {}).get("parent") or ROOT_QUEUE


def state_of(queue: Manifest) -> str:
    return (queue.get("status") or {}).get("state") or ""


def about(kind: str, obj: Manifest, problems: Iterable[str]) -> list[str]:
    """The problems, each with the object that has it."""
    metadata = obj.get("metadata") or {}
    name = metadata.get("name") or metadata.get("generateName", "")
    place = f"{metadata['namespace']}/{name}" if metadata.get("namespace") else name
    return [f"{kind} {place}: {problem}" for problem in problems]
