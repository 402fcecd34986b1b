"""The share of the cluster that amounts are, by their largest resource. Not in Volcano."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.framework.session import Session


def largest_share(session: Session, amounts: NDArray[np.float64]) -> float:
    """`amounts`: by resource of the node table."""
    total, rows = session.total, session.table.rows
    return max((float(amounts[row]) / total[name] for name, row in rows.items() if total[name] > 0), default=0.0)
