"""Spreading over topology domains. kube-scheduler: PodTopologySpread, with the system's defaults."""

from __future__ import annotations

import math
from typing import Any

from tests.reference.kube import node_affinity, taints
from tests.reference.kube.node_map import NodeMap
from tests.reference.kube.selectors import Pod, labels_of, matches, namespace_of
from tests.reference.node import Node

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
DEFAULTS = ((HOSTNAME, 3), (ZONE, 5))
IGNORED = -1


def _count(pods: list[Pod], selectors: list[dict[str, Any] | None], namespace: str) -> int:
    """Matching pods of the namespace that are not being deleted; 0 for a selector that matches everything."""
    count = 0
    if all(s is not None and not (s.get("matchLabels") or s.get("matchExpressions")) for s in selectors):
        return 0
    for pod in pods:
        if pod["metadata"].get("deletionTimestamp") or namespace_of(pod) != namespace:
            continue
        count += all(matches(s, labels_of(pod)) for s in selectors)
    return count


def _included(constraint: dict[str, Any], pod: Pod, node: Node) -> bool:
    """Whether the node's pods count, by nodeAffinityPolicy and nodeTaintsPolicy."""
    if constraint.get("nodeAffinityPolicy", "Honor") == "Honor" and not node_affinity.required_matches(pod, node):
        return False
    return constraint.get("nodeTaintsPolicy", "Ignore") != "Honor" or taints.taints_are_tolerated(pod, node)


def _selector(constraint: dict[str, Any], pod: Pod) -> dict[str, Any] | None:
    """The constraint's selector, with the pod's values of `matchLabelKeys`."""
    selector, labels = constraint.get("labelSelector"), labels_of(pod)
    if selector is None:
        return None
    keys = [k for k in constraint.get("matchLabelKeys") or [] if k in labels]
    same = [{"key": k, "operator": "In", "values": [labels[k]]} for k in keys]
    return {**selector, "matchExpressions": [*(selector.get("matchExpressions") or []), *same]}


def _own(pod: Pod, when: str) -> list[dict[str, Any]]:
    constraints = pod["spec"].get("topologySpreadConstraints") or []
    return [c for c in constraints if c["whenUnsatisfiable"] == when]


class SpreadState:
    """The counts of PreFilter for the hard constraints."""

    def __init__(self, pod: Pod, node_map: NodeMap) -> None:
        self.pod = pod
        self.constraints = _own(pod, "DoNotSchedule")
        self.counts: list[dict[str, int]] = [{} for _ in self.constraints]
        keys = [c["topologyKey"] for c in self.constraints]
        for name, node in node_map.nodes.items():
            if not all(k in node.labels for k in keys):
                continue
            for c, counts in zip(self.constraints, self.counts, strict=True):
                if _included(c, pod, node):
                    value = node.labels[c["topologyKey"]]
                    more = _count(node_map.pods[name], [_selector(c, pod)], namespace_of(pod))
                    counts[value] = counts.get(value, 0) + more

    def verdict(self, node: Node) -> str:
        """Empty: accepted; else `no domain` or `too many`, from the first constraint that rejects."""
        for c, counts in zip(self.constraints, self.counts, strict=True):
            key = c["topologyKey"]
            if key not in node.labels:
                return "no domain"
            least = min(counts.values(), default=2**31 - 1)
            if len(counts) < c.get("minDomains", 1):
                least = 0
            itself = 1 if matches(_selector(c, self.pod), labels_of(self.pod)) else 0
            if counts.get(node.labels[key], 0) + itself - least > c["maxSkew"]:
                return "too many"
        return ""


def default_selectors(pod: Pod, node_map: NodeMap) -> list[dict[str, Any]]:
    """Selectors of the services and of the owner that the pod belongs to; all must match. Labels of services and of a
    ReplicationController are one map, in which the later value counts."""
    labels, namespace = labels_of(pod), namespace_of(pod)
    found: list[dict[str, Any]] = []
    together: dict[str, str] = {}
    for service in node_map.services:
        selector = service["spec"].get("selector")
        if namespace_of(service) == namespace and selector and matches({"matchLabels": selector}, labels):
            together |= selector
    for owner in pod["metadata"].get("ownerReferences") or []:
        if not owner.get("controller"):
            continue
        for o in node_map.owners:
            same = o["kind"] == owner["kind"] and o["metadata"]["name"] == owner["name"]
            of_group = "v1" if o["kind"] == "ReplicationController" else "apps/v1"
            if same and owner.get("apiVersion") == of_group and namespace_of(o) == namespace:
                selector = o["spec"].get("selector") or {}
                if o["kind"] == "ReplicationController":
                    together |= selector
                elif selector.get("matchLabels") or selector.get("matchExpressions"):
                    found.append(selector)
    return [*([{"matchLabels": together}] if together else []), *found]


def scores(pod: Pod, candidates: list[Node], node_map: NodeMap) -> list[int] | None:
    """Scores of the soft constraints, normalised; None: there are none."""
    constraints: list[tuple[dict[str, Any], list[dict[str, Any] | None]]] = []
    is_default = not pod["spec"].get("topologySpreadConstraints")
    if is_default:
        selectors = default_selectors(pod, node_map)
        if selectors:
            constraints = [({"topologyKey": key, "maxSkew": skew}, list(selectors)) for key, skew in DEFAULTS]
    else:
        constraints = [(c, [_selector(c, pod)]) for c in _own(pod, "ScheduleAnyway")]
    if not constraints:
        return None

    def ignored(node: Node) -> bool:
        return not is_default and not all(c["topologyKey"] in node.labels for c, _ in constraints)

    namespace = namespace_of(pod)
    scored = [n for n in candidates if not ignored(n)]
    counts: list[dict[str, int]] = []
    weights: list[float] = []
    for c, wanted in constraints:
        key = c["topologyKey"]
        per_value: dict[str, int] = {}
        if key == HOSTNAME:
            domains = len(scored)
        else:
            # By default, candidates without the key are scored too, and form one domain.
            for node in scored:
                per_value[node.labels.get(key, "")] = 0
            domains = len(per_value)
            for name, node in node_map.nodes.items():
                value = node.labels.get(key, "")
                if not ignored(node) and _included(c, pod, node) and value in per_value:
                    per_value[value] += _count(node_map.pods[name], wanted, namespace)
        counts.append(per_value)
        weights.append(math.log(domains + 2))

    raw = []
    for node in candidates:
        if ignored(node):
            raw.append(IGNORED)
            continue
        total = 0.0
        for (c, wanted), per_value, weight in zip(constraints, counts, weights, strict=True):
            key = c["topologyKey"]
            if key not in node.labels:
                continue
            if key == HOSTNAME:
                count = _count(node_map.pods[node.name], wanted, namespace)
            else:
                count = per_value[node.labels[key]]
            total += count * weight + (c["maxSkew"] - 1)
        raw.append(math.floor(total + 0.5))
    valid = [r for r in raw if r != IGNORED]
    least, greatest = min(valid, default=0), max(valid, default=0)
    result = []
    for r in raw:
        if r == IGNORED:
            result.append(0)
        elif greatest == 0:
            result.append(100)
        else:
            result.append(100 * (greatest + least - r) // greatest)
    return result
