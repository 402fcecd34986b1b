"""Common parts of API objects: metadata, conditions, label selectors, timestamps.

`ApiType` and `ApiObject` define how all structs of this package are encoded in JSON: camelCase names,
unknown fields ignored, absent fields get the default (which is the CRD's default), `null` is accepted for
maps, lists and optional values. Timestamps stay text; `parse_time` converts them to seconds.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache

from msgspec import Struct, field


class ApiType(Struct, rename="camel", omit_defaults=True, gc=False, kw_only=True):
    """A part of an object. Fields with their default are omitted when it is encoded."""


class OwnerReference(ApiType):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(ApiType):
    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[OwnerReference] | None = None
    finalizers: list[str] | None = None

    @property
    def key(self) -> str:
        """`namespace/name`, or the name for cluster-scoped objects."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that controls this object, if there is one."""
        for owner in self.owner_references or ():
            if owner.controller:
                return owner
        return None


class ApiObject(Struct, rename="camel", gc=False, kw_only=True):
    """A whole object. `api_version` and `kind` are always encoded; subclasses set their defaults."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)

    @property
    def key(self) -> str:
        """`namespace/name`, or the name alone for objects of the whole cluster."""
        return self.metadata.key


class LabelSelectorRequirement(ApiType):
    key: str = ""
    operator: str = ""
    """`In`, `NotIn`, `Exists` or `DoesNotExist`."""
    values: list[str] | None = None


class LabelSelector(ApiType):
    match_labels: dict[str, str] | None = None
    match_expressions: list[LabelSelectorRequirement] | None = None


class Condition(ApiType):
    """A condition of any kind: pods, nodes, and the generic `metav1.Condition`."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    last_probe_time: str | None = None
    observed_generation: int | None = None


class ObjectReference(ApiType):
    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    field_path: str = ""


@lru_cache(maxsize=65536)
def parse_time(timestamp: str) -> float:
    """RFC 3339 text as seconds since the epoch. Raises ValueError for anything else."""
    try:
        moment = datetime.fromisoformat(timestamp)
    except ValueError:
        raise ValueError(f"invalid time {timestamp!r}: write RFC 3339, e.g. 2026-01-31T12:00:00Z") from None
    if moment.tzinfo is None:
        raise ValueError(f"invalid time {timestamp!r}: the zone is missing (write Z for UTC)")
    return moment.timestamp()


def format_time(seconds: float) -> str:
    """Seconds since the epoch as the API server writes times: UTC, whole seconds."""
    return datetime.fromtimestamp(int(seconds // 1), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
