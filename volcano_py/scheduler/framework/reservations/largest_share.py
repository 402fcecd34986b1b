"""The share of the cluster that amounts are, by their largest resource. Not in Volcano."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.framework.session import Session
from volcano_py.scheduler.model.resource import Resource

CountedResources = tuple[tuple[str, float], ...]
"""Names, and the amounts of the whole cluster."""


def counted_resources(session: Session, names: Collection[str] = ()) -> CountedResources:
    """The resources of the cluster that count; without names: all."""
    total = session.total
    return tuple((name, total[name]) for name in total.names() if total[name] > 0 and (not names or name in names))


def share_of(amounts: Resource, counted: CountedResources) -> float:
    """The share of the cluster, by the largest of the resources that count."""
    return max((amounts[name] / whole for name, whole in counted), default=0.0)


def largest_share(session: Session, amounts: NDArray[np.float64]) -> float:
    """`amounts`: by resource of the node table."""
    total, rows = session.total, session.table.rows
    return max((float(amounts[row]) / total[name] for name, row in rows.items() if total[name] > 0), default=0.0)
