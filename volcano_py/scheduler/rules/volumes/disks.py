"""Disks that cannot be attached to one node for two pods. kube-scheduler: VolumeRestrictions."""

from __future__ import annotations

from collections.abc import Sequence

from volcano_py.api.core import RBDVolumeSource, Volume
from volcano_py.scheduler.model.claims.volume_demand import is_disk


def shares_disk(mine: Sequence[Volume] | None, theirs: Sequence[Volume] | None) -> bool:
    """Whether two pods with these volumes use a disk that cannot be attached to one node for both."""
    disks = [v for v in mine or () if is_disk(v)]
    return bool(disks) and any(_conflict(one, other) for other in theirs or () for one in disks)


def _conflict(one: Volume, other: Volume) -> bool:
    if (a := one.gce_persistent_disk) and (b := other.gce_persistent_disk) and a.pd_name == b.pd_name:
        return not (a.read_only and b.read_only)
    if (c := one.aws_elastic_block_store) and (d := other.aws_elastic_block_store):
        return c.volume_id == d.volume_id
    if (e := one.iscsi) and (f := other.iscsi) and e.iqn == f.iqn:
        return not (e.read_only and f.read_only)
    return one.rbd is not None and other.rbd is not None and _same_image(one.rbd, other.rbd)


def _same_image(one: RBDVolumeSource, other: RBDVolumeSource) -> bool:
    if (one.pool, one.image) != (other.pool, other.image) or not set(one.monitors or ()) & set(other.monitors or ()):
        return False
    return not (one.read_only and other.read_only)
