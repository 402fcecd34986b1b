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

COMPOSITE: Final = "CompositePodGroup"
"""CompositePodGroup, and parents of groups; since 1.37."""
POLICY: Final = "PodGroupPreemptionPolicy"
"""preemptionPolicy of groups; since 1.37."""

JOB: Final = "WorkloadWithJob"
"""Workload and PodGroup of Jobs, and `spec.scheduling` of a Job; here since 1.37."""

ALL_ALPHA: Final = "AllAlpha"
"""Enables all alpha gates."""

KNOWN: Final = (GENERIC_WORKLOAD, GANG_SCHEDULING, TOPOLOGY, PREEMPTION, CLAIMS)
"""Of 1.36."""
OF_VERSION: Final[dict[str, tuple[str, ...]]] = {
    "1.33": (),
    "1.34": (),
    "1.35": (),
    "1.36": KNOWN,
    "1.37": (GENERIC_WORKLOAD, TOPOLOGY, COMPOSITE, CLAIMS, POLICY, JOB),
}
_NEEDS: Final = {COMPOSITE: TOPOLOGY}


def is_at_least(version: str, other: str) -> bool:
    """Whether a version of Kubernetes is another one, or later."""
    return _numbers(version) >= _numbers(other)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def parse(text: str, version: str = "1.36") -> frozenset[str]:
    """The enabled gates, from `Name=true,Other=false`. Raises ValueError if the text is invalid.

    `version`: of Kubernetes; gates of another version are unknown.
    """
    if version not in OF_VERSION:
        raise ValueError(f"--kubernetes-version: {version} is unknown; valid values are {', '.join(OF_VERSION)}")
    known = OF_VERSION[version]
    gates: dict[str, bool] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = entry.partition("=")
        if name not in (*known, ALL_ALPHA):
            valid = ", ".join((*known, ALL_ALPHA))
            raise ValueError(f"--feature-gates: {name} is unknown; valid values are {valid} (Kubernetes {version})")
        if value.lower() not in ("true", "false"):
            raise ValueError(f"--feature-gates: {entry}: write {name}=true or {name}=false")
        gates[name] = value.lower() == "true"
    everything = gates.pop(ALL_ALPHA, False)
    on = frozenset(name for name in known if gates.get(name, everything))
    if on and GENERIC_WORKLOAD not in on:
        raise ValueError(f"--feature-gates: {', '.join(sorted(on))} needs {GENERIC_WORKLOAD}=true")
    for gate, needed in _NEEDS.items():
        if gate in on and needed not in on:
            raise ValueError(f"--feature-gates: {gate} needs {needed}=true")
    return on
