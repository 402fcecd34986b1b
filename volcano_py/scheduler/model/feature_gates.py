"""Feature gates and their defaults. Volcano: pkg/features; for devices, those of Kubernetes 1.36.

`--feature-gates` changes them. The model keeps the enabled ones (`Cluster.features`), and rules read them there.
"""

from __future__ import annotations

from collections.abc import Mapping

DEFAULT_GATES = frozenset(
    {
        "WorkLoadSupport",
        "VolcanoJobSupport",
        "PodDisruptionBudgetsSupport",
        "QueueCommandSync",
        "PriorityClass",
        "ResourceTopology",
        "CronVolcanoJobSupport",
        "DynamicResourceAllocation",
        "DRAAdminAccess",
        "DRAConsumableCapacity",
        "DRADeviceBindingConditions",
        "DRADeviceTaints",
        "DRAExtendedResource",
        "DRAPartitionableDevices",
        "DRAPrioritizedList",
    }
)
"""The feature gates that are enabled by default."""


def enabled_gates(given: Mapping[str, bool], priority_class: bool = True) -> frozenset[str]:
    """The enabled feature gates: the defaults, changed by `--feature-gates` and `--priority-class`."""
    on = {gate for gate, value in given.items() if value}
    gates = frozenset(gate for gate in DEFAULT_GATES if given.get(gate, True)) | on
    return gates if priority_class else gates - {"PriorityClass"}
