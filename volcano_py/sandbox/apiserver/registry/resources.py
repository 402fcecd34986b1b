"""Definitions of served resources, and the registry for paths and discovery.

Kubernetes: the API installer and APIResource.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from volcano_py.sandbox.apiserver.schema.types import Type
from volcano_py.sandbox.apiserver.storage.store import Collection

if TYPE_CHECKING:
    from volcano_py.sandbox.apiserver.registry.strategy import Strategy

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
CUSTOM_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
STATUS_VERBS = ("get", "patch", "update")


@dataclass(slots=True)
class Subresource:
    """A subresource such as `pods/log`. `handler` is the name of its handler; status and scale are generic."""

    name: str
    kind: str
    verbs: tuple[str, ...]
    group: str | None = None  # of its kind, if it differs from the resource's (autoscaling/v1 Scale)
    version: str | None = None


@dataclass(slots=True)
class Resource:
    """One resource in one version."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    verbs: tuple[str, ...]
    type: Type
    strategy: Strategy
    collection: Collection
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    list_kind: str = ""
    subresources: dict[str, Subresource] = field(default_factory=dict)
    custom: Any = None  # the CRD version that defines it (crd.Served), None for built-in kinds
    # conversion between the stored form and this version's, if they differ in more than the apiVersion
    from_stored: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    to_stored: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    prefix: bytes = b""
    item_prefix: bytes = b""

    def __post_init__(self) -> None:
        self.list_kind = self.list_kind or self.kind + "List"
        self.prefix = f'{{"kind":"{self.kind}","apiVersion":"{self.api_version}",'.encode()
        self.item_prefix = self.prefix if self.custom is not None else b"{"

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def error_group(self) -> str:
        """The group in error messages: that of the stored form."""
        return self.group if self.to_stored is None else ""

    @property
    def qualified(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def object_bytes(self, tail: bytes) -> bytes:
        """A complete object in this version from stored bytes."""
        if self.from_stored is not None:
            tail = self.converted(tail)
        return self.prefix + tail

    def item_bytes(self, tail: bytes) -> bytes:
        """An item of a list from stored bytes; items of built-in lists have no kind."""
        if self.from_stored is not None:
            tail = self.converted(tail)
        return self.item_prefix + tail

    def converted(self, tail: bytes) -> bytes:
        import orjson

        assert self.from_stored is not None
        return orjson.dumps(self.from_stored(orjson.loads(b"{" + tail)))[1:]


class Registry:
    """Groups, versions and resources, in the order of discovery."""

    def __init__(self) -> None:
        self.groups: dict[str, dict[str, dict[str, Resource]]] = {}
        self.changed: list[Callable[[], None]] = []
        self.by_kind: dict[tuple[str, str], Resource] = {}

    def add(self, resource: Resource) -> None:
        version = self.groups.setdefault(resource.group, {}).setdefault(resource.version, {})
        version[resource.plural] = resource
        self.by_kind[resource.api_version, resource.kind] = resource
        self._notify()

    def add_version(self, group: str, version: str) -> None:
        self.groups.setdefault(group, {}).setdefault(version, {})

    def remove(self, group: str, version: str, plural: str) -> None:
        versions = self.groups.get(group, {})
        gone = versions.get(version, {}).pop(plural, None)
        if gone is not None:
            self.by_kind.pop((gone.api_version, gone.kind), None)
        if version in versions and not versions[version]:
            del versions[version]
        if group in self.groups and not versions:
            del self.groups[group]
        self._notify()

    def get(self, group: str, version: str, plural: str) -> Resource | None:
        return self.groups.get(group, {}).get(version, {}).get(plural)

    def find(self, group: str, plural: str) -> Resource | None:
        """A resource in any served version."""
        for resources in self.groups.get(group, {}).values():
            if plural in resources:
                return resources[plural]
        return None

    def __iter__(self) -> Any:
        for versions in self.groups.values():
            for resources in versions.values():
                yield from resources.values()

    def _notify(self) -> None:
        for callback in self.changed:
            callback()
