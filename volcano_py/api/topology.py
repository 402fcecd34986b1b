"""HyperNode (topology.volcano.sh/v1alpha1): a performance domain of nodes or of other HyperNodes."""

from __future__ import annotations

from msgspec import field

from volcano_py.api.meta import ApiObject, ApiType, Condition, LabelSelector

API_VERSION = "topology.volcano.sh/v1alpha1"

MEMBER_NODE = "Node"
MEMBER_HYPERNODE = "HyperNode"


class ExactMatch(ApiType):
    name: str = ""


class RegexMatch(ApiType):
    pattern: str = ""


class MemberSelector(ApiType):
    """Exactly one of the three is set."""

    exact_match: ExactMatch | None = None
    regex_match: RegexMatch | None = None
    label_match: LabelSelector | None = None


class Member(ApiType):
    type: str = ""
    selector: MemberSelector = field(default_factory=MemberSelector)


class HyperNodeSpec(ApiType):
    tier: int = 0
    tier_name: str = ""
    members: list[Member] | None = None


class HyperNodeStatus(ApiType):
    conditions: list[Condition] | None = None
    node_count: int = 0


class HyperNode(ApiObject):
    api_version: str = API_VERSION
    kind: str = "HyperNode"
    spec: HyperNodeSpec = field(default_factory=HyperNodeSpec)
    status: HyperNodeStatus = field(default_factory=HyperNodeStatus)
