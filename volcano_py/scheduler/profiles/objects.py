"""Objects of the kinds that plugins read in addition to nodes and pods. Kubernetes: the listers of shared informers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

Manifest = Mapping[str, Any]


class ObjectKind(NamedTuple):
    """A kind that a plugin reads."""

    api_version: str
    kind: str

    @classmethod
    def of(cls, manifest: Manifest) -> ObjectKind:
        return cls(manifest.get("apiVersion", ""), manifest["kind"])


class Objects:
    """Keys are `namespace/name`, or the name for cluster-scoped objects."""

    def __init__(self) -> None:
        self._others: dict[ObjectKind, dict[str, Manifest]] = {}

    def get(self, kind: ObjectKind, key: str) -> Manifest | None:
        return self._others.get(kind, {}).get(key)

    def all(self, kind: ObjectKind) -> Collection[Manifest]:
        return self._others.get(kind, {}).values()

    def set(self, manifest: Manifest) -> Manifest | None:
        """Store an object; returns the previous version."""
        stored = self._others.setdefault(ObjectKind.of(manifest), {})
        key = key_of(manifest)
        old = stored.get(key)
        stored[key] = manifest
        return old

    def delete(self, kind: ObjectKind, key: str) -> Manifest | None:
        """Remove an object; returns the last version."""
        return self._others.get(kind, {}).pop(key, None)


def key_of(manifest: Manifest) -> str:
    metadata = manifest["metadata"]
    space = metadata.get("namespace")
    return f"{space}/{metadata['name']}" if space else str(metadata["name"])
