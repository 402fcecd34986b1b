"""The kinds that the scheduler watches. Volcano: the informers of the scheduler cache."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from volcano_py.api import kinds
from volcano_py.api.kinds import ResourceType
from volcano_py.scheduler.model.jobs.group_names import COMPOSITE, NATIVE


@dataclass(frozen=True)
class Watched:
    """A kind to watch."""

    rt: ResourceType
    gate: str = ""
    """The feature gate that it depends on; empty: always watched."""
    optional: bool = False
    """Whether the cluster may lack it (its CRD is not installed, or a feature gate of the API server is off)."""
    versions: tuple[ResourceType, ...] = ()
    """The versions of its API group that have the kind, the preferred one first; empty: `rt` alone."""
    name: str = ""
    """The name of the kind in the model, if another API group has a kind of the same name."""

    @property
    def kind(self) -> str:
        """The kind in the model."""
        return self.name or self.rt.kind

    @property
    def plural(self) -> str:
        """Its name in log lines and health checks."""
        return f"{self.rt.plural}.{self.rt.group}" if self.name else self.rt.plural


TABLE: tuple[Watched, ...] = (
    # Pods last: their nodes, groups and queues then exist, which is faster (any order is correct).
    Watched(kinds.PRIORITYCLASS, "PriorityClass"),
    Watched(kinds.QUEUE),
    Watched(kinds.NODE),
    Watched(kinds.PODGROUP),
    Watched(kinds.NAMESPACE),
    Watched(kinds.NATIVE_PODGROUP, optional=True, versions=kinds.NATIVE_PODGROUPS, name=NATIVE),
    Watched(kinds.COMPOSITE_PODGROUP, optional=True, name=COMPOSITE),
    Watched(kinds.RESOURCEQUOTA),
    Watched(kinds.SERVICE),
    Watched(kinds.PERSISTENTVOLUMECLAIM),
    Watched(kinds.PERSISTENTVOLUME),
    Watched(kinds.STORAGECLASS),
    Watched(kinds.CSINODE),
    Watched(kinds.CSIDRIVER),
    Watched(kinds.CSISTORAGECAPACITY),
    Watched(kinds.VOLUMEATTACHMENT),
    Watched(kinds.DEVICECLASS, "DynamicResourceAllocation", optional=True),
    Watched(kinds.RESOURCESLICE, "DynamicResourceAllocation", optional=True),
    Watched(kinds.RESOURCECLAIM, "DynamicResourceAllocation", optional=True),
    Watched(kinds.DEVICETAINTRULE, "DRADeviceTaintRules", optional=True),
    Watched(kinds.REPLICATIONCONTROLLER, "WorkLoadSupport"),
    Watched(kinds.REPLICASET, "WorkLoadSupport"),
    Watched(kinds.STATEFULSET, "WorkLoadSupport"),
    Watched(kinds.PODDISRUPTIONBUDGET, "PodDisruptionBudgetsSupport"),
    Watched(kinds.NUMATOPOLOGY, "ResourceTopology", optional=True),
    Watched(kinds.HYPERNODE, optional=True),
    Watched(kinds.POD),
)


def watched(gates: Collection[str]) -> Iterator[Watched]:
    """The kinds to watch with these enabled feature gates."""
    return (entry for entry in TABLE if not entry.gate or entry.gate in gates)
