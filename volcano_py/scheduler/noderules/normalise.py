"""How kube-scheduler turns raw scores into scores from 0 to 100."""

from __future__ import annotations

import numpy as np

from volcano_py.scheduler.framework.search.node_rules import Floats


def default_normalise(raw: Floats, reverse: bool) -> Floats:
    """100·raw // highest; reversed: 100 minus that. If all raw scores are 0: unchanged, or 100 for all."""
    highest = raw.max() if len(raw) else 0
    if highest <= 0:
        return np.full(len(raw), 100.0) if reverse else raw.astype(np.float64)
    scaled = np.floor(100 * raw / highest)
    return 100 - scaled if reverse else scaled
