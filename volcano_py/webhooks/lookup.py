"""The interface by which rules read the existing queues, and its implementation over a list of queues."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from volcano_py.api.scheduling import ROOT_QUEUE

Manifest = Mapping[str, Any]
"""A JSON object."""


class Queues(Protocol):
    """The queues of the cluster before the request."""

    def get(self, name: str) -> Manifest | None:
        """The queue with this name, or None."""

    def children(self, name: str) -> Sequence[Manifest]:
        """The queues whose `spec.parent` is `name`; a queue without a parent is a child of root."""

    def all(self) -> Iterable[Manifest]:
        """All queues."""


class QueueIndex:
    """`Queues` over a collection of manifests; `put` and `remove` update it."""

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
    """The name of the parent: root by default, empty for root itself."""
    if queue["metadata"].get("name") == ROOT_QUEUE:
        return ""
    return (queue.get("spec") or {}).get("parent") or ROOT_QUEUE


def state_of(queue: Manifest) -> str:
    return (queue.get("status") or {}).get("state") or ""


def about(kind: str, obj: Manifest, problems: Iterable[str]) -> list[str]:
    """The problems, each prefixed with the object's kind and name."""
    metadata = obj.get("metadata") or {}
    name = metadata.get("name") or metadata.get("generateName", "")
    place = f"{metadata['namespace']}/{name}" if metadata.get("namespace") else name
    return [f"{kind} {place}: {problem}" for problem in problems]
