"""The responses of kube-scheduler's extender webhooks. Kubernetes: extender/v1.

Keys may be in any case and any value may be null, as Go decodes them. A response of another form is a failure of the
extender.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

_DEPTH = 4
"""The depth to which keys are converted: `nodes`, `items`, `metadata`, `name`."""


class _Metadata(msgspec.Struct):
    name: str


class _Node(msgspec.Struct):
    metadata: _Metadata


class _Nodes(msgspec.Struct):
    items: list[_Node] | None = None


class Filtered(msgspec.Struct):
    """ExtenderFilterResult."""

    nodes: _Nodes | None = None
    nodenames: list[str] | None = None
    failednodes: dict[str, str] | None = None
    failedandunresolvablenodes: dict[str, str] | None = None
    error: str | None = None

    @property
    def passed(self) -> set[str]:
        """The nodes that passed, given as names or as Nodes."""
        if self.nodenames is not None:
            return set(self.nodenames)
        return {n.metadata.name for n in (self.nodes.items if self.nodes is not None else None) or ()}


class HostPriority(msgspec.Struct):
    host: str = ""
    score: int = 0


class Bound(msgspec.Struct):
    """ExtenderBindingResult."""

    error: str | None = None


class _MetaPod(msgspec.Struct):
    uid: str = ""


class MetaVictims(msgspec.Struct):
    pods: list[_MetaPod] | None = None
    numpdbviolations: int | None = None

    @property
    def uids(self) -> list[str]:
        return [p.uid for p in self.pods or ()]


class Preempted(msgspec.Struct):
    """ExtenderPreemptionResult."""

    nodenametometavictims: dict[str, MetaVictims | None] | None = None


def decode(body: Any, kind: type[T], empty: Any) -> T:
    """Decode a response to a struct. `empty`: the value for null. Raises ValueError with the field."""
    return msgspec.convert(_lower(body, _DEPTH) if body is not None else empty, kind)


def _lower(value: Any, depth: int) -> Any:
    """Convert all keys to lower case, to the depth of the keys that are read."""
    if isinstance(value, list):
        return [_lower(v, depth) for v in value]
    if isinstance(value, dict) and depth:
        return {str(k).lower(): _lower(v, depth - 1) for k, v in value.items()}
    return value
