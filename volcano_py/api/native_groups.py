"""The PodGroup of scheduling.k8s.io of a pod of a JobSet or a LeaderWorkerSet, by its labels.

Admission names it in new pods that ask for native groups, and the podgroup controller creates it. Both derive the same
name, so that neither has to wait for the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

ANNOTATION: Final = "volcano.sh/native-groups"
"""Of a pod template: "true" selects native groups instead of a PodGroup of Volcano."""
JOBSET_NAME: Final = "jobset.sigs.k8s.io/jobset-name"
JOBSET_UID: Final = "jobset.sigs.k8s.io/jobset-uid"
REPLICATED_JOB: Final = "jobset.sigs.k8s.io/replicatedjob-name"
JOB_INDEX: Final = "jobset.sigs.k8s.io/job-index"
LWS_NAME: Final = "leaderworkerset.sigs.k8s.io/name"
LWS_INDEX: Final = "leaderworkerset.sigs.k8s.io/group-index"


class NativeGroup(NamedTuple):
    """The groups of a pod, from its PodGroup up to the root: names of objects."""

    owner: str
    """The name of the JobSet or LeaderWorkerSet."""
    part: str
    """The replicated Job of a JobSet; empty for a LeaderWorkerSet."""
    number: str

    @property
    def root(self) -> str:
        return f"{self.owner}-groups"

    @property
    def middle(self) -> str:
        """Of a replicated Job."""
        return f"{self.owner}-{self.part}-groups"

    @property
    def name(self) -> str:
        return f"{self.owner}-{self.part}-{self.number}" if self.part else f"{self.owner}-{self.number}"


def native_group(labels: Mapping[str, str] | None, annotations: Mapping[str, str] | None) -> NativeGroup | None:
    """The groups of a pod that requests them; None for other pods."""
    if (annotations or {}).get(ANNOTATION) != "true" or not labels:
        return None
    if labels.get(JOBSET_NAME) and labels.get(REPLICATED_JOB) and labels.get(JOB_INDEX):
        return NativeGroup(labels[JOBSET_NAME], labels[REPLICATED_JOB], labels[JOB_INDEX])
    if labels.get(LWS_NAME) and labels.get(LWS_INDEX):
        return NativeGroup(labels[LWS_NAME], "", labels[LWS_INDEX])
    return None
