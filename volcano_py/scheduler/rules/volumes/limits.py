"""Limits of attached volumes: a node accepts a number of volumes of each driver. kube-scheduler: NodeVolumeLimits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping

Handle = tuple[str, str]
"""A volume: its driver and its name there."""


def exceeds(handles: Iterable[tuple[str, str, bool]], attached: Container[Handle], free: Mapping[str, float]) -> bool:
    """Whether the volumes exceed the limits of a node.

    `handles`: as in VolumeDemand. `attached`: the handles on the node. `free`: how many more of each driver it accepts.
    """
    new = Counter(driver for driver, handle, alone in set(handles) if alone or (driver, handle) not in attached)
    return any(driver in free and number > free[driver] for driver, number in new.items())
