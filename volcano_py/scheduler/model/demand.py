"""Demand: what the claims of a pod mean for nodes, of all sorts together."""

from __future__ import annotations

from typing import NamedTuple

from volcano_py.scheduler.model.resource_claims import ClaimDemand
from volcano_py.scheduler.model.volume_demand import VolumeDemand


class Demand(NamedTuple):
    """What the claims of a pod mean; None where it has none of a sort."""

    volumes: VolumeDemand | None = None
    devices: ClaimDemand | None = None

    @property
    def key(self) -> bytes:
        """Equal for pods that are equal for nodes."""
        parts = [part.key for part in self if part is not None]
        return b"\0".join(parts)

    @property
    def counted(self) -> tuple[str, ...]:
        """A resource for each volume that counts."""
        return self.volumes.counted if self.volumes is not None else ()


NONE = Demand()
"""The demand of a pod that claims nothing."""
