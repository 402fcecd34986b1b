"""PodInfo: a pod in the form that rules read, decoded once. Kubernetes: scheduling framework, PodInfo."""

from __future__ import annotations

import copy
from collections.abc import Mapping

import msgspec

from volcano_py.api.affinity import NodeAffinity, TopologySpreadConstraint, decode_affinity, decode_topology_spread
from volcano_py.api.core import ContainerPort, Pod, Toleration
from volcano_py.api.meta import parse_time
from volcano_py.scheduler.model.claims.storage import claim_names
from volcano_py.scheduler.model.jobs.pod_request import non_zero_request, pod_request
from volcano_py.scheduler.model.resource_names import CPU, PODS
from volcano_py.scheduler.rules.pod_affinity import terms_of

FIRST = (CPU, "memory", "ephemeral-storage")
"""Resources that all nodes have, in the order of messages."""
_NO_NODE_AFFINITY = NodeAffinity()


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
        """The PersistentVolumeClaims of the pod, see `model.claims.storage`."""
        self.claims = bool(self.volume_claims or spec.resource_claims or any("/" in name for name in self.requests))
        """Whether it claims volumes or devices, or may do so with an extended resource."""
        affinity = decode_affinity(spec)
        self.node_affinity = (affinity.node_affinity if affinity else None) or _NO_NODE_AFFINITY
        terms = terms_of(affinity, self.namespace)
        self.affinity, self.anti_affinity, self.preferred = terms
        self.has_terms = bool(terms)
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


def _whole(name: str, amount: float) -> int:
    """An amount in whole units; the model keeps scalar resources in thousandths, memory and pods in whole units."""
    return int(amount) if name in (CPU, "memory") else -int(-amount // 1000)
