"""PodInfo: a pod in the form that rules read, decoded once. Kubernetes: scheduling framework, PodInfo."""

from __future__ import annotations

import copy
from collections.abc import Mapping

import msgspec

from volcano_py.api.affinity import (
    Affinity,
    NodeAffinity,
    PodAffinity,
    PodAffinityTerm,
    TopologySpreadConstraint,
    decode_affinity,
    decode_topology_spread,
)
from volcano_py.api.core import ContainerPort, Pod, Toleration
from volcano_py.api.meta import parse_time
from volcano_py.api.selector import matches
from volcano_py.scheduler.model.pod_request import non_zero_request, pod_request
from volcano_py.scheduler.model.resource_names import CPU, PODS
from volcano_py.scheduler.model.storage import claim_names

FIRST = (CPU, "memory", "ephemeral-storage")
"""Resources that all nodes have, in the order of messages."""
_NO_AFFINITY = Affinity()
_NO_NODE_AFFINITY = NodeAffinity()
_NO_POD_AFFINITY = PodAffinity()


class Term:
    """An affinity term of one pod, with its namespaces."""

    __slots__ = ("key", "namespaces", "selector", "spaces", "weight")

    def __init__(self, term: PodAffinityTerm, owner: str, weight: int = 0) -> None:
        named = term.namespaces or ()
        own = not named and term.namespace_selector is None
        self.namespaces = frozenset((owner,)) if own else frozenset(named)
        self.spaces = term.namespace_selector
        self.selector = term.label_selector
        self.key = term.topology_key
        self.weight = weight

    def selects(self, pod: PodInfo, namespace_labels: Mapping[str, str] | None) -> bool:
        """Whether the term selects a pod whose namespace has these labels."""
        if pod.namespace in self.namespaces or matches(self.spaces, namespace_labels):
            return matches(self.selector, pod.labels)
        return False

    @property
    def means(self) -> tuple[frozenset[str], bytes]:
        """A key that is equal for terms that select the same pods."""
        return self.namespaces, msgspec.msgpack.encode((self.selector, self.spaces))

    def resolved(self, namespaces: Mapping[str, Mapping[str, str]]) -> Term:
        """The term with the names of the namespaces that its selector matches now."""
        if self.spaces is None:
            return self
        other = object.__new__(Term)
        other.spaces, other.selector, other.key, other.weight = self.spaces, self.selector, self.key, self.weight
        other.namespaces = self.namespaces | {n for n, labels in namespaces.items() if matches(self.spaces, labels)}
        return other


class PodInfo:
    """Amounts: cpu in thousandths, everything else in whole units. Raises ValueError for invalid quantities."""

    def __init__(self, pod: Pod) -> None:
        spec = pod.spec
        self.pod = pod
        self.name = pod.metadata.name
        self.namespace = pod.metadata.namespace
        self.key = pod.key
        self.labels: Mapping[str, str] = pod.metadata.labels or {}
        self.priority = spec.priority or 0
        self.tolerations: list[Toleration] = spec.tolerations or []
        self.gates = [g.name for g in spec.scheduling_gates or ()]
        group = spec.scheduling_group
        self.group = f"{self.namespace}/{group.pod_group_name}" if group and group.pod_group_name else ""
        self.requests: dict[str, int] = {}
        """The requests: cpu, memory and local disk first."""
        requested = pod_request(pod).as_dict()
        for name in (*(n for n in FIRST if n in requested), *(n for n in requested if n not in FIRST)):
            if name != PODS and requested[name]:
                self.requests[name] = _whole(name, requested[name])
        self.non_zero = non_zero_request(pod)
        sidecars = [c for c in spec.init_containers or () if c.restart_policy == "Always"]
        self.ports: list[ContainerPort] = [
            p for c in (*(spec.containers or ()), *sidecars) for p in c.ports or () if p.host_port
        ]
        self.volume_claims = claim_names(pod) if spec.volumes else []
        """The PersistentVolumeClaims of the pod, see `model.storage`."""
        self.claims = bool(self.volume_claims or spec.resource_claims or any("/" in name for name in self.requests))
        """Whether it claims volumes or devices, or may do so with an extended resource."""
        affinity = decode_affinity(spec) or _NO_AFFINITY
        self.node_affinity = affinity.node_affinity or _NO_NODE_AFFINITY
        near, far = affinity.pod_affinity or _NO_POD_AFFINITY, affinity.pod_anti_affinity or _NO_POD_AFFINITY
        self.affinity = self._required(near)
        self.anti_affinity = self._required(far)
        self.preferred = self._preferred(near, 1) + self._preferred(far, -1)
        """Weights of anti-affinity are negative."""
        self.has_terms = bool(self.affinity or self.anti_affinity or self.preferred)
        self.spread: list[TopologySpreadConstraint] = decode_topology_spread(spec)

    def on(self, node: str) -> PodInfo:
        """The same pod with another node."""
        other = copy.copy(self)
        spec = msgspec.structs.replace(self.pod.spec, node_name=node)
        other.pod = msgspec.structs.replace(self.pod, spec=spec)
        return other

    @property
    def node(self) -> str:
        """The node to which it is bound, or empty."""
        return self.pod.spec.node_name

    @property
    def terminating(self) -> bool:
        return self.pod.metadata.deletion_timestamp is not None

    @property
    def start(self) -> float | None:
        """The start time in seconds since the epoch."""
        text = self.pod.status.start_time
        return parse_time(text) if text else None

    def _required(self, affinity: PodAffinity) -> list[Term]:
        return [Term(t, self.namespace) for t in affinity.required_during_scheduling_ignored_during_execution or ()]

    def _preferred(self, affinity: PodAffinity, sign: int) -> list[Term]:
        terms = affinity.preferred_during_scheduling_ignored_during_execution or ()
        return [Term(t.pod_affinity_term, self.namespace, sign * t.weight) for t in terms]


def _whole(name: str, amount: float) -> int:
    """An amount in whole units; the model keeps scalar resources in thousandths, memory and pods in whole units."""
    return int(amount) if name in (CPU, "memory") else -int(-amount // 1000)
