"""Node affinity, pod affinity and topology spread, which a PodSpec contains as raw JSON."""

from __future__ import annotations

import msgspec
from msgspec import field

from volcano_py.api.core import PodSpec
from volcano_py.api.meta import ApiType, LabelSelector


class NodeSelectorRequirement(ApiType):
    key: str = ""
    operator: str = ""
    """`In`, `NotIn`, `Exists`, `DoesNotExist`, `Gt`, `Lt`."""
    values: list[str] | None = None


class NodeSelectorTerm(ApiType):
    match_expressions: list[NodeSelectorRequirement] | None = None
    match_fields: list[NodeSelectorRequirement] | None = None


class NodeSelector(ApiType):
    node_selector_terms: list[NodeSelectorTerm] | None = None


class PreferredSchedulingTerm(ApiType):
    weight: int = 0
    preference: NodeSelectorTerm = field(default_factory=NodeSelectorTerm)


class NodeAffinity(ApiType):
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: list[PreferredSchedulingTerm] | None = None


class PodAffinityTerm(ApiType):
    label_selector: LabelSelector | None = None
    namespaces: list[str] | None = None
    topology_key: str = ""
    namespace_selector: LabelSelector | None = None
    match_label_keys: list[str] | None = None
    mismatch_label_keys: list[str] | None = None


class WeightedPodAffinityTerm(ApiType):
    weight: int = 0
    pod_affinity_term: PodAffinityTerm = field(default_factory=PodAffinityTerm)


class PodAffinity(ApiType):
    """Both affinity and anti-affinity between pods."""

    required_during_scheduling_ignored_during_execution: list[PodAffinityTerm] | None = None
    preferred_during_scheduling_ignored_during_execution: list[WeightedPodAffinityTerm] | None = None


class Affinity(ApiType):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(ApiType):
    max_skew: int = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: list[str] | None = None


_affinity = msgspec.json.Decoder(Affinity | None)
_topology_spread = msgspec.json.Decoder(list[TopologySpreadConstraint] | None)


def decode_affinity(spec: PodSpec) -> Affinity | None:
    """The pod's affinity, or None. Raises msgspec.ValidationError if it is malformed."""
    return _affinity.decode(spec.affinity) if spec.affinity else None


def decode_topology_spread(spec: PodSpec) -> list[TopologySpreadConstraint]:
    """The pod's topology spread constraints. Raises msgspec.ValidationError if they are malformed."""
    raw = spec.topology_spread_constraints
    return (_topology_spread.decode(raw) or []) if raw else []
