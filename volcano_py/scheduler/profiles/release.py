"""Release: what profiles do differently in one version of Kubernetes than in another, one field per rule.

Profiles decide as kube-scheduler of this version does. A rule that is the same in all versions has no field here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Release(NamedTuple):
    name: str
    """`major.minor`."""
    gates: frozenset[str]
    """The feature gates of profiles that are on by default."""
    gang_gate: str
    """The feature gate of PodGroups: of the plugin GangScheduling, and of groups in the queue."""
    whole_groups: bool
    """Whether a root group is the unit of the queue, of an attempt and of preemption (`profiles.groups`)."""
    node_name_first: bool
    """Whether the default plugin NodeName precedes NodeUnschedulable."""
    states_no_claims: bool
    """Whether the condition of a rejected pod states that DynamicResources has nothing to deallocate for it."""
    states_victims: bool
    """Whether the condition of a pod that evicts others names its node and the number of victims."""


V1_36 = Release(
    "1.36",
    gates=frozenset(("SchedulerPopFromBackoffQ",)),
    gang_gate="GangScheduling",
    whole_groups=False,
    node_name_first=False,
    states_no_claims=True,
    states_victims=False,
)
V1_37 = Release(
    "1.37",
    gates=frozenset(("SchedulerPopFromBackoffQ", "StorageCapacityScoring")),
    gang_gate="GenericWorkload",
    whole_groups=True,
    node_name_first=True,
    states_no_claims=False,
    states_victims=True,
)
RELEASES: Mapping[str, Release] = {r.name: r for r in (V1_36, V1_37)}
DEFAULT = V1_36
"""Where no version is given, and there is no cluster whose version counts."""


def release_of(version: str) -> Release:
    """The release whose rules hold for a version of Kubernetes such as `1.37` or `v1.37.2`: earlier versions are
    treated as the first one listed, later ones as the last. Raises ValueError."""
    parts = version.strip().removeprefix("v").split(".")
    try:
        wanted = int(parts[0]), int(parts[1].rstrip("+"))
    except (IndexError, ValueError):
        names = ", ".join(RELEASES)
        raise ValueError(f"Kubernetes version {version!r}: write it as one of {names}") from None
    found = next(iter(RELEASES.values()))
    for name, release in RELEASES.items():
        major, minor = name.split(".")
        if (int(major), int(minor)) <= wanted:
            found = release
    return found
