"""Parsing and validation of amounts in objects: what nodes offer, and the fields of ResourceQuotas. Volcano: NodeInfo's
setNode and its oversubscription."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import isfinite

from volcano_py.api import core, names, quantity
from volcano_py.scheduler.model.resource import Resource


def check_quota(quota: core.ResourceQuota) -> None:
    """Raises ValueError with the field whose value is not a valid amount."""
    for field, amounts in (("hard", quota.status.hard), ("used", quota.status.used)):
        for name, amount in (amounts or {}).items():
            try:
                quantity.parse(amount)
            except ValueError as e:
                raise ValueError(f"status.{field}[{name}]: {e}") from None


def allocatable(node: core.Node, attachable: Mapping[str, int], extended: Mapping[str, float]) -> Resource:
    """What pods can request on a node. Raises ValueError.

    `attachable`: the number of volumes of each driver, by resource. `extended`: what devices provide; it counts where
    the node itself offers none of the resource.
    """
    try:
        have = Resource.parse(node.status.allocatable)
    except ValueError as e:
        raise ValueError(f"status.allocatable.{e}") from None
    for name, amount in have.as_dict().items():
        if amount < 0:
            raise ValueError(f"status.allocatable.{name}: a negative amount; use 0 or more")
    for name, limit in attachable.items():
        have.scalars = {**(have.scalars or {}), name: float(limit)}
    for name, amount in extended.items():
        if not have[name]:
            have[name] = amount
    return have


_FLOAT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def oversubscribed(node: core.Node) -> tuple[float, float]:
    """The oversubscribed milli-cpu and bytes that the node's agent adds; text that is not a number counts as 0."""
    annotations = node.metadata.annotations or {}
    texts = [annotations.get(key, "") for key in (names.OVERSUBSCRIPTION_CPU, names.OVERSUBSCRIPTION_MEMORY)]
    cpu, memory = (float(text) if _FLOAT.fullmatch(text) else 0.0 for text in texts)
    return cpu if isfinite(cpu) else 0.0, memory if isfinite(memory) else 0.0
