"""The constraints of a pod, its own or the defaults, and the pods that they count. Kubernetes: PodTopologySpread,
common.go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from volcano_py.api.affinity import TopologySpreadConstraint
from volcano_py.api.core import Node
from volcano_py.api.meta import LabelSelector, LabelSelectorRequirement
from volcano_py.api.selector import is_empty, matches
from volcano_py.scheduler.profiles.cluster import ZONE, Cluster
from volcano_py.scheduler.profiles.node_info import NodeInfo
from volcano_py.scheduler.profiles.plugins.node_affinity import node_matches
from volcano_py.scheduler.profiles.pod_info import PodInfo
from volcano_py.scheduler.rules.taints import repels

HOSTNAME = "kubernetes.io/hostname"
_SYSTEM = (
    TopologySpreadConstraint(topology_key=HOSTNAME, max_skew=3, when_unsatisfiable="ScheduleAnyway"),
    TopologySpreadConstraint(topology_key=ZONE, max_skew=5, when_unsatisfiable="ScheduleAnyway"),
)


class Arguments(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    default_constraints: list[TopologySpreadConstraint] = []
    """Constraints for pods without own ones; they count the pods of the same Services and owners."""
    defaulting_type: Literal["System", "List"] = "System"

    @property
    def defaults(self) -> Sequence[TopologySpreadConstraint]:
        return _SYSTEM if self.defaulting_type == "System" else self.default_constraints


class Constraint(NamedTuple):
    key: str
    max_skew: int
    selectors: tuple[LabelSelector, ...]
    """A pod counts if all of them select it."""
    min_domains: int = 1
    affinity_counts: bool = True
    """Whether only nodes that match the pod's node affinity count."""
    taints_count: bool = False
    """Whether only nodes whose taints the pod tolerates count."""

    @property
    def selectors_key(self) -> bytes:
        """The selectors as a key for comparisons."""
        return msgspec.msgpack.encode(self.selectors)


def constraints_of(pod: PodInfo, when: str, args: Arguments, cluster: Cluster) -> list[Constraint]:
    """The pod's constraints with that `whenUnsatisfiable`."""
    if pod.spread:
        return [_own(c, pod) for c in pod.spread if c.when_unsatisfiable == when]
    defaults = [c for c in args.defaults if c.when_unsatisfiable == when]
    chosen = default_selectors(pod, cluster) if defaults else ()
    return [_of(c, chosen) for c in defaults] if chosen else []


def default_selectors(pod: PodInfo, cluster: Cluster) -> tuple[LabelSelector, ...]:
    """The selectors of the pod's Services and of the workload that owns it; empty selectors are left out."""
    found: dict[str, str] = {}
    for service in cluster.services.values():
        chosen = service.spec.selector or {}
        mine = service.metadata.namespace == pod.namespace
        if mine and all(pod.labels.get(k) == v for k, v in chosen.items()):
            found.update(chosen)
    selectors: list[LabelSelector | None] = [LabelSelector(match_labels=found)]
    owner = pod.pod.metadata.controller
    workload = cluster.workload(owner.kind, f"{pod.namespace}/{owner.name}") if owner else None
    if workload is not None:
        chosen_by = workload.spec.selector
        selectors.append(LabelSelector(match_labels=chosen_by) if isinstance(chosen_by, dict) else chosen_by)
    return tuple(s for s in selectors if s is not None and not is_empty(s))


def selects(constraint: Constraint, labels: Mapping[str, str]) -> bool:
    return bool(constraint.selectors) and all(matches(s, labels) for s in constraint.selectors)


def has_keys(labels: Mapping[str, str], constraints: Sequence[Constraint]) -> bool:
    return all(c.key in labels for c in constraints)


def counts_there(constraint: Constraint, pod: PodInfo, node: Node) -> bool:
    """Whether the constraint's policies count pods on this node."""
    if constraint.affinity_counts and not node_matches(pod, node):
        return False
    return not (constraint.taints_count and repels(node, pod.tolerations))


def matching_pods(constraint: Constraint, namespace: str, node: NodeInfo) -> int:
    """The number of matching pods on a node. An empty selector matches nothing; terminating pods do not count."""
    if all(is_empty(s) for s in constraint.selectors):
        return 0
    here = (p for p in node.pods.values() if p.namespace == namespace and not p.terminating)
    return sum(selects(constraint, p.labels) for p in here)


def _own(c: TopologySpreadConstraint, pod: PodInfo) -> Constraint:
    chosen = [c.label_selector] if c.label_selector is not None else []
    same = [k for k in c.match_label_keys or () if k in pod.labels]
    if same:
        requirements = [LabelSelectorRequirement(key=k, operator="In", values=[pod.labels[k]]) for k in same]
        chosen.append(LabelSelector(match_expressions=requirements))
    return _of(c, tuple(chosen))


def _of(c: TopologySpreadConstraint, selectors: tuple[LabelSelector, ...]) -> Constraint:
    affinity, taints = c.node_affinity_policy != "Ignore", c.node_taints_policy == "Honor"
    return Constraint(c.topology_key, c.max_skew, selectors, c.min_domains or 1, affinity, taints)
