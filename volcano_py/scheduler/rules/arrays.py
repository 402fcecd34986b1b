"""The arrays of rules: one entry for each node, in the order of the model's nodes unless stated otherwise."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Codes = NDArray[np.int8]
"""0 accepts; other numbers are reasons of the rule."""
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Indices = NDArray[np.intp]
