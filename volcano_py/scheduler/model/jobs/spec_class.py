"""Spec classes: pods that are equal for every node share one object, and every cache is per class, not per pod. Not in
Volcano; kube-scheduler: pod signatures.

A class holds the request, the selectors, tolerations, affinity terms, ports and images of its pods, decoded
once. Labels are not part of it (job controllers label each pod differently) except those of Ascend chips and those that
plugins declare, the namespace only where a term requires it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple
from weakref import WeakValueDictionary

import msgspec
import numpy as np
from numpy.typing import NDArray

from volcano_py.api import names
from volcano_py.api.affinity import (
    Affinity,
    PodAffinity,
    TopologySpreadConstraint,
    decode_affinity,
    decode_topology_spread,
)
from volcano_py.api.core import Container, ContainerPort, Pod, Toleration
from volcano_py.api.meta import LabelSelector
from volcano_py.api.selector import check
from volcano_py.scheduler.model.claims.demand import NONE, PodClaimDemand
from volcano_py.scheduler.model.jobs.pod_images import containers_of, images_of, mounted_images
from volcano_py.scheduler.model.jobs.pod_request import non_zero_request, pod_request
from volcano_py.scheduler.model.nodes.node_table import NodeNumbers, NodeTable, PodAmounts
from volcano_py.scheduler.model.resource import Resource
from volcano_py.scheduler.model.resource_names import PODS

DECLARED = (
    names.RESOURCE_STRATEGY_SCORING_TYPE,
    names.RESOURCE_STRATEGY_WEIGHT,
    names.NUMA_TOPOLOGY_POLICY,
    names.VGPU_MODE,
    names.VGPU_USE_UUID,
    names.VGPU_NO_USE_UUID,
    names.GPU_USE_TYPE,
    names.GPU_NO_USE_TYPE,
    names.ASCEND_VNPU_MODE,
)
"""Annotations that node rules read: pods that differ in one of them are of different classes."""
ANNOTATIONS_OF_CLASS = (*DECLARED, names.VGPU_PODGROUP_POLICY, names.GROUP_NAME)
"""All annotations that the class of a pod depends on."""
LABELS_OF_CLASS = (names.NPU_JOB_KIND, names.NPU_LEVEL, names.NPU_DVPP)
"""Labels that the class of a pod depends on, if it has the first one."""
_encoder = msgspec.msgpack.Encoder()


class SpecClass:
    """The parts of a pod that concern nodes. Shared, and immutable except for the dense vector."""

    __slots__ = (
        "__weakref__",
        "_rows",
        "_usage",
        "_vector",
        "affinity",
        "best_effort",
        "claims",
        "containers",
        "demands",
        "id",
        "idle_wishes",
        "images",
        "namespace",
        "node_selector",
        "nonzero",
        "ports",
        "request",
        "spread",
        "tolerations",
    )

    def __init__(self, pod: Pod, request: Resource, number: int, claims: PodClaimDemand = NONE) -> None:
        spec = pod.spec
        for name in claims.counted:
            request.add_scalar(name, 1.0)
        self.claims = claims
        """The requirements of the claims of one pod of this class; those of others differ only in irrelevant names."""
        self.id = number
        self.request = request
        self.best_effort = request.is_empty()
        self.demands = [(d, request[d]) for d in request.keys() if d != PODS and request[d] > 0]
        """(resource, amount) of the requests above 0, without `pods`."""
        self.idle_wishes = [name for name, amount in (request.scalars or {}).items() if amount == 0]
        """Resources that the request contains with amount 0."""
        self.nonzero: NDArray[np.float64] = np.array(non_zero_request(pod), dtype=np.float64)
        """(milli-cpu, bytes) as kube-scheduler's least and most allocated count them."""
        self.node_selector: dict[str, str] = spec.node_selector or {}
        self.affinity: Affinity | None = decode_affinity(spec)
        self.spread: list[TopologySpreadConstraint] = decode_topology_spread(spec)
        for where, selector in _selectors(self.affinity, self.spread):
            try:
                check(selector)
            except ValueError as e:
                raise ValueError(f"spec.{where}: {e}") from None
        self.tolerations: list[Toleration] = spec.tolerations or []
        self.ports: list[ContainerPort] = _host_ports(pod)
        self.images = images_of(pod)
        self.containers = containers_of(pod)
        self.namespace = pod.metadata.namespace
        self._vector: NDArray[np.float64] | None = None
        self._rows: list[int] = []
        self._usage: dict[int, PodAmounts] = {}

    def vector(self, table: NodeTable) -> NDArray[np.float64]:
        """The request as one column of the node table: float64 [resources]."""
        v = self._vector
        if v is None or len(v) != len(table.rows):
            v = np.zeros(len(table.rows))
            for name, amount in self.request.as_dict().items():
                v[table.rows[name]] = amount
            self._vector = v
            self._usage.clear()
            self._rows = sorted(table.rows[name] for name in self.request.keys())
        return v

    def usage(self, table: NodeTable, numbers: NodeNumbers) -> PodAmounts:
        """What one pod adds to the columns of its node."""
        v = self.vector(table)
        found = self._usage.get(len(numbers.matrix))
        if found is None:
            found = self._usage[len(numbers.matrix)] = numbers.usage(v, self.nonzero)
        return found

    def checked_rows(self, table: NodeTable) -> list[int]:
        """The rows that must fit: cpu, memory and every scalar of the request, even with 0."""
        self.vector(table)
        return self._rows


def equal_for_nodes(old: Pod, new: Pod, keys: PodKeys) -> bool:
    """Whether a pod without claims has certainly kept its class with an update: its spec and all annotations that a
    class depends on are the same, and it was not resized."""
    if old.spec != new.spec or _resized(old) or _resized(new):
        return False
    if _labels_of_class(old) != _labels_of_class(new) or keys.values(old) != keys.values(new):
        return False
    before, now = old.metadata.annotations or {}, new.metadata.annotations or {}
    return before == now or all(before.get(key) == now.get(key) for key in ANNOTATIONS_OF_CLASS)


def _labels_of_class(pod: Pod) -> list[str | None] | None:
    labels = pod.metadata.labels
    return [labels.get(key) for key in LABELS_OF_CLASS] if labels and names.NPU_JOB_KIND in labels else None


def _resized(pod: Pod) -> bool:
    """Whether the status of a container has resources, which may differ from those of the spec."""
    status = pod.status
    return any(
        s.resources is not None for s in (*(status.container_statuses or ()), *(status.init_container_statuses or ()))
    )


_Values = tuple[list[str | None], list[str | None]] | tuple[list[str | None], list[str | None], str, int | None]


class PodKeys(NamedTuple):
    """Labels and annotations of pods that plugins read in their rules: pods that differ in one of them are of different
    classes."""

    labels: tuple[str, ...] = ()
    annotations: tuple[str, ...] = ()
    profiles: frozenset[str] = frozenset()
    """The schedulerNames with rules of their own: for their pods, name and priority are part of the class, too."""

    def values(self, pod: Pod) -> _Values | None:
        """What a pod has of them; None: nothing is declared, or nothing concerns it."""
        profile = pod.spec.scheduler_name if pod.spec.scheduler_name in self.profiles else ""
        if not self.labels and not self.annotations and not profile:
            return None
        labels, annotations = pod.metadata.labels or {}, pod.metadata.annotations or {}
        own = [labels.get(key) for key in self.labels], [annotations.get(key) for key in self.annotations]
        return (*own, profile, pod.spec.priority) if profile else own


class SpecClasses:
    """All classes in use; a class is dropped with its last pod."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self.keys = PodKeys()
        self._known: WeakValueDictionary[bytes, SpecClass] = WeakValueDictionary()
        self._next = 0

    def all(self) -> list[SpecClass]:
        """The classes of all existing pods."""
        return list(self._known.values())

    def of(self, pod: Pod, claims: PodClaimDemand = NONE) -> SpecClass:
        """The class of a pod. Raises ValueError for an invalid request or affinity."""
        request = pod_request(pod) if _resized(pod) else None
        key = _key(pod, request, claims, self.keys)
        known = self._known.get(key)
        if known is None:
            try:
                known = SpecClass(pod, request or pod_request(pod), self._next, claims)
            except msgspec.ValidationError as e:
                raise ValueError(f"spec: {e}") from None
            self._next += 1
            for name in known.request.keys():
                self._table.row(name)
            self._known[key] = known
        return known


def _key(pod: Pod, request: Resource | None, claims: PodClaimDemand, keys: PodKeys) -> bytes:
    spec = pod.spec
    per_container = [_container_key(c) for c in spec.containers or ()]
    inits = [_container_key(c) for c in spec.init_containers or ()]
    annotations = pod.metadata.annotations or {}
    group = names.VGPU_PODGROUP_POLICY in annotations
    scoped = bool(spec.affinity or spec.topology_spread_constraints)
    return _encoder.encode(
        (
            per_container,
            inits,
            mounted_images(pod),
            spec.node_selector,
            bytes(spec.affinity),
            bytes(spec.topology_spread_constraints),
            spec.tolerations,
            spec.overhead,
            spec.resources.requests if spec.resources else None,
            spec.host_network,
            pod.metadata.namespace if scoped else "",
            repr(request) if request else "",
            [annotations.get(key) for key in DECLARED],
            (pod.metadata.namespace, annotations.get(names.GROUP_NAME)) if group else None,
            claims.key,
            _labels_of_class(pod),
            keys.values(pod),
        )
    )


def _container_key(c: Container) -> tuple[object, ...]:
    return (c.image, c.resources.requests, c.resources.limits, c.ports, c.restart_policy)


def _selectors(
    affinity: Affinity | None, spread: list[TopologySpreadConstraint]
) -> Iterator[tuple[str, LabelSelector | None]]:
    """All label selectors, each with its field."""
    sides: tuple[tuple[str, PodAffinity | None], ...] = ()
    if affinity is not None:
        sides = (("podAffinity", affinity.pod_affinity), ("podAntiAffinity", affinity.pod_anti_affinity))
    for side, of in sides:
        if of is None:
            continue
        terms = list(of.required_during_scheduling_ignored_during_execution or ())
        terms += (t.pod_affinity_term for t in of.preferred_during_scheduling_ignored_during_execution or ())
        for term in terms:
            yield f"affinity.{side}", term.label_selector
            yield f"affinity.{side}", term.namespace_selector
    for constraint in spread:
        yield "topologySpreadConstraints", constraint.label_selector


def _host_ports(pod: Pod) -> list[ContainerPort]:
    ports = []
    for c in pod.spec.containers or ():
        ports += [p for p in c.ports or () if p.host_port > 0]
    for c in pod.spec.init_containers or ():
        if c.restart_policy == "Always":
            ports += [p for p in c.ports or () if p.host_port > 0]
    return ports
