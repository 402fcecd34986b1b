"""Demand: what all claims of a pod, for volumes and for devices, require of nodes. Volcano: the volume and DRA
resources of NewTaskInfo."""

from __future__ import annotations

from typing import NamedTuple

from volcano_py.scheduler.model.claims.resource_claims import ClaimDemand
from volcano_py.scheduler.model.claims.volume_demand import VolumeDemand


class PodClaimDemand(NamedTuple):
    """The requirements of a pod's claims; None for a type of claims that the pod does not have."""

    volumes: VolumeDemand | None = None
    devices: ClaimDemand | None = None

    @property
    def key(self) -> bytes:
        """Equal for pods whose claims have the same requirements."""
        parts = [part.key for part in self if part is not None]
        return b"\0".join(parts)

    @property
    def counted(self) -> tuple[str, ...]:
        """One resource name for each volume that counts against a limit."""
        return self.volumes.counted if self.volumes is not None else ()


NONE = PodClaimDemand()
"""The demand of a pod without claims."""
