"""Raw scores relative to the highest. kube-scheduler: DefaultNormalizeScore."""

from __future__ import annotations

from typing import Any

import numpy as np

from volcano_py.scheduler.rules.arrays import Floats


def share_of_highest(raw: Any, *, reverse: bool) -> Floats:
    """The highest score becomes 100, or 0 if `reverse`; the others in proportion, rounded down. If no score is above 0:
    unchanged, or 100 for all if `reverse`. Raw scores are whole numbers."""
    highest = raw.max(initial=0)
    if highest <= 0:
        return np.full(len(raw), 100.0) if reverse else raw.astype(np.float64)
    scaled: Floats = np.floor(100 * raw / highest)
    return 100 - scaled if reverse else scaled
