"""NodeShard (shard.volcano.sh/v1alpha1): the nodes of the scheduler of the same name."""

from __future__ import annotations

from msgspec import field

from volcano_py.api.meta import ApiObject, ApiType

API_VERSION = "shard.volcano.sh/v1alpha1"


class NodeShardSpec(ApiType):
    nodes_desired: list[str] | None = None


class NodeShardStatus(ApiType):
    last_update_time: str | None = None
    nodes_in_use: list[str] | None = None
    nodes_to_remove: list[str] | None = None
    nodes_to_add: list[str] | None = None


class NodeShard(ApiObject):
    api_version: str = API_VERSION
    kind: str = "NodeShard"
    spec: NodeShardSpec = field(default_factory=NodeShardSpec)
    status: NodeShardStatus = field(default_factory=NodeShardStatus)
