"""Even spreading over topology domains. kube-scheduler: PodTopologySpread.

A front end counts the pods that a constraint selects, per node; the rule decides from these counts. Where a label is
missing, the filter rejects; the score by the system's defaults treats the label as empty, as kube-scheduler does.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import copy
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from volcano_py.api.affinity import NodeSelector, TopologySpreadConstraint
from volcano_py.api.core import Node, Pod, Toleration
from volcano_py.api.meta import LabelSelector
from volcano_py.api.selector import check, is_empty
from volcano_py.api.selector import matches as selector_matches
from volcano_py.scheduler.model.cluster import Cluster
from volcano_py.scheduler.rules.arrays import Bools, Floats, Indices, Ints
from volcano_py.scheduler.rules.domains import Domains
from volcano_py.scheduler.rules.node_affinity import matches, matching_nodes
from volcano_py.scheduler.rules.taints import node_taints, repels

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
OWNERS = (("v1", "ReplicationController"), ("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet"))
"""The owners whose selectors define the default spreading of pods."""
SYSTEM_DEFAULTS = (
    TopologySpreadConstraint(topology_key=HOSTNAME, max_skew=3, when_unsatisfiable="ScheduleAnyway"),
    TopologySpreadConstraint(topology_key=ZONE, max_skew=5, when_unsatisfiable="ScheduleAnyway"),
)
NO_LABEL, TOO_MANY = 1, 2
"""Why a node is rejected: it lacks the label, or its domain would have too many pods."""


# ---- constraints ------------------------------------------------------------------------------------------------


class SpreadConstraint(NamedTuple):
    """A constraint of a pod, with the values of its matchLabelKeys."""

    key: str
    max_skew: int
    min_domains: int
    selectors: tuple[LabelSelector, ...]
    """A pod is selected if all of them match; none match nothing."""
    affinity_counts: bool
    """Whether nodes that the selector or affinity excludes are no domains (the default)."""
    taints_count: bool
    """Whether nodes with untolerated taints are no domains (not the default)."""

    def selects(self, labels: Mapping[str, str]) -> bool:
        return bool(self.selectors) and all(selector_matches(s, labels) for s in self.selectors)

    @property
    def counts(self) -> bool:
        """Whether it counts pods: kube-scheduler counts none for a selector that selects all."""
        return not all(is_empty(s) for s in self.selectors)


def of_pod(c: TopologySpreadConstraint, labels: Mapping[str, str]) -> SpreadConstraint:
    """A constraint of the specification of a pod with these labels."""
    if c.label_selector is None:
        return with_selectors(c, ())
    same = {k: labels[k] for k in c.match_label_keys or () if k in labels}
    return with_selectors(c, (c.label_selector, LabelSelector(match_labels=same)) if same else (c.label_selector,))


def with_selectors(c: TopologySpreadConstraint, selectors: tuple[LabelSelector, ...]) -> SpreadConstraint:
    """A constraint that counts the pods which these selectors select."""
    affinity, taints = c.node_affinity_policy != "Ignore", c.node_taints_policy == "Honor"
    return SpreadConstraint(c.topology_key, c.max_skew, c.min_domains or 1, selectors, affinity, taints)


def default_selectors(pod: Pod, cluster: Cluster) -> tuple[LabelSelector, ...]:
    """The selectors of the Services and the controller of a pod, for constraints that are defaults."""
    labels, others = pod.metadata.labels or {}, cluster.others
    required: dict[str, str] = {}
    for service in others.get("Service", {}).values():
        chosen = service.spec.selector or {}
        same = service.metadata.namespace == pod.metadata.namespace
        if same and all(labels.get(k) == v for k, v in chosen.items()):
            required.update(chosen)
    selectors: list[LabelSelector] = []
    owner = pod.metadata.controller
    if owner is not None and (owner.api_version, owner.kind) in OWNERS:
        workload = others.get(owner.kind, {}).get(f"{pod.metadata.namespace}/{owner.name}")
        chosen = workload.spec.selector if workload is not None else None
        if isinstance(chosen, dict):  # a ReplicationController's
            required.update(chosen)
        elif chosen is not None and not is_empty(chosen):
            with suppress(ValueError):  # Kubernetes ignores a selector that is invalid
                check(chosen)
                selectors.append(chosen)
    return (LabelSelector(match_labels=required), *selectors) if required else tuple(selectors)


# ---- the nodes that count ---------------------------------------------------------------------------------------


def included(
    cluster: Cluster,
    c: SpreadConstraint,
    labels: Mapping[str, str] | None,
    required: NodeSelector | None,
    tolerations: Sequence[Toleration],
) -> Bools:
    """The nodes that count as members of domains for a pod with this node selector, affinity and tolerations."""
    ok: Bools = np.ones(len(cluster.nodes), dtype=np.bool_)
    if c.affinity_counts:
        ok &= matching_nodes(cluster, labels, required)
    if c.taints_count:
        ok &= ~node_taints(cluster).repel(tolerations)
    return ok


def includes(
    node: Node,
    c: SpreadConstraint,
    labels: Mapping[str, str] | None,
    required: NodeSelector | None,
    tolerations: Sequence[Toleration],
) -> bool:
    """The same for one node."""
    if c.affinity_counts and not matches(labels, required, node):
        return False
    return not (c.taints_count and repels(node, tolerations))


def nodes_with_all(all_domains: Sequence[Domains], count: int) -> Bools:
    """The nodes that have all keys."""
    found: Bools = np.ones(count, dtype=np.bool_)
    for d in all_domains:
        found &= d.has
    return found


# ---- the filter -------------------------------------------------------------------------------------------------


class Counting(NamedTuple):
    """The domains of a constraint, and which of its nodes and domains count."""

    domains: Domains
    counted: Bools
    exists: Bools


def countings(all_domains: Sequence[Domains], members: Sequence[Bools]) -> list[Counting]:
    """Of each constraint. `members`: the results of `included`."""
    found = []
    for d, ok in zip(all_domains, members, strict=True):
        counted = ok & nodes_with_all(all_domains, len(ok))
        exists = np.zeros(d.size, dtype=np.bool_)
        exists[d.codes[counted]] = True
        found.append(Counting(d, counted, exists))
    return found


class DomainPods:
    """The pods that a constraint counts in each domain, for a pod with these labels."""

    def __init__(self, c: SpreadConstraint, counting: Counting, pods: Ints, labels: Mapping[str, str]) -> None:
        self._constraint = c
        self._domains = counting.domains
        self._exists = counting.exists
        self._own = int(c.selects(labels))
        self._sums = counting.domains.sums(np.where(counting.counted, pods, 0))

    def clone(self) -> DomainPods:
        other = copy(self)
        other._sums = self._sums.copy()
        return other

    def move(self, value: str, sign: int) -> None:
        """Count or uncount a pod in a domain."""
        number = self._domains.numbers.get(value)
        if number is not None:
            self._sums[number] += sign

    def of_nodes(self) -> NDArray[np.int8]:
        """0 for nodes that are accepted, else why they are not."""
        # One result for each domain, and a last one for nodes without the label, whose number is -1.
        answers = np.full(self._domains.size + 1, NO_LABEL, dtype=np.int8)
        answers[:-1] = np.where(self._sums > self._most(), TOO_MANY, 0)
        return answers[self._domains.codes]

    def of_node(self, labels: Mapping[str, str]) -> int:
        """The same for a node with these labels."""
        value = labels.get(self._constraint.key)
        if value is None:
            return NO_LABEL
        number = self._domains.numbers.get(value)
        here = int(self._sums[number]) if number is not None else 0
        return TOO_MANY if here > self._most() else 0

    def _most(self) -> int:
        """How many pods a domain may have before the pod."""
        existing = self._sums[self._exists]
        enough = len(existing) >= self._constraint.min_domains
        lowest = int(existing.min()) if enough and len(existing) else 0
        return lowest + self._constraint.max_skew - self._own


# ---- the score --------------------------------------------------------------------------------------------------


class Preference(NamedTuple):
    """What the score reads of a constraint: the pods that it selects on each node, and the result of `included`."""

    constraint: SpreadConstraint
    domains: Domains
    pods: Ints
    members: Bools


def scores(preferences: Sequence[Preference], nodes: Indices, need_all: bool) -> Ints:
    """From 0 to 100 for some nodes: the fewer selected pods are in their domains, the higher.

    `need_all`: nodes without one of the keys get 0.
    """
    count = len(preferences[0].members)
    has_keys = nodes_with_all([p.domains for p in preferences] if need_all else (), count)
    rated = has_keys[nodes]
    total: Floats = np.zeros(len(nodes))
    for c, d, pods, members in preferences:
        if c.key == HOSTNAME:
            size, counts = int(rated.sum()), pods[nodes]
        else:
            filled = d.with_empty
            size = len(np.unique(filled.codes[nodes][rated]))
            counts = filled.around(np.where(has_keys & members, pods, 0))[nodes]
        total += np.where(d.has[nodes], counts * math.log(size + 2) + float(c.max_skew - 1), 0.0)
    raw = np.floor(total + 0.5).astype(np.int64)
    low, high = (int(raw[rated].min()), int(raw[rated].max())) if rated.any() else (0, 0)
    found = 100 * (high + low - raw) // high if high else np.full(len(nodes), 100, dtype=np.int64)
    return np.where(rated, found, 0)
