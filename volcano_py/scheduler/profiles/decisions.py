"""What the scheduler wants done, as data for its caller."""

from __future__ import annotations

from typing import NamedTuple

from volcano_py.scheduler.profiles.pod_info import PodInfo


class Bind(NamedTuple):
    pod: PodInfo
    node: str


class Evict(NamedTuple):
    pod: PodInfo
    preemptor: PodInfo


class Nominate(NamedTuple):
    """Write `status.nominatedNodeName`; an empty node clears it."""

    pod: PodInfo
    node: str


class Fail(NamedTuple):
    """Write the condition PodScheduled=False."""

    pod: PodInfo
    message: str


Decision = Bind | Evict | Nominate | Fail
