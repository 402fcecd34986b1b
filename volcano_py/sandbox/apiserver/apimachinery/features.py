"""The feature gates of the API server: alpha APIs and fields that are disabled by default. Kubernetes:
--feature-gates."""

from __future__ import annotations

from typing import Final

GENERIC_WORKLOAD: Final = "GenericWorkload"
"""Workload and PodGroup of scheduling.k8s.io/v1alpha2, and the pod's spec.schedulingGroup."""
TOPOLOGY: Final = "TopologyAwareWorkloadScheduling"
"""schedulingConstraints of a PodGroup."""
PREEMPTION: Final = "WorkloadAwarePreemption"
"""disruptionMode, priorityClassName and priority of a PodGroup."""
CLAIMS: Final = "DRAWorkloadResourceClaims"
"""resourceClaims of a PodGroup."""
GANG_SCHEDULING: Final = "GangScheduling"
"""Schedulers read it; API servers accept it, too."""

ALL_ALPHA: Final = "AllAlpha"
"""Enables all alpha gates."""

KNOWN: Final = (GENERIC_WORKLOAD, GANG_SCHEDULING, TOPOLOGY, PREEMPTION, CLAIMS)


def parse(text: str) -> frozenset[str]:
    """The enabled gates, from `Name=true,Other=false`. Raises ValueError if the text is invalid."""
    gates: dict[str, bool] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = entry.partition("=")
        if name not in (*KNOWN, ALL_ALPHA):
            raise ValueError(f"--feature-gates: {name} is unknown; valid values are {', '.join((*KNOWN, ALL_ALPHA))}")
        if value.lower() not in ("true", "false"):
            raise ValueError(f"--feature-gates: {entry}: write {name}=true or {name}=false")
        gates[name] = value.lower() == "true"
    everything = gates.pop(ALL_ALPHA, False)
    on = frozenset(name for name in KNOWN if gates.get(name, everything))
    if on and GENERIC_WORKLOAD not in on:
        raise ValueError(f"--feature-gates: {', '.join(sorted(on))} needs {GENERIC_WORKLOAD}=true")
    return on
