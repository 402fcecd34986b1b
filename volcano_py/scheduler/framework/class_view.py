"""ClassView: what a class of equal pods thinks of every node, as arrays. `Placement` makes it and keeps it up."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from volcano_py.scheduler.framework.fit_errors import FitErrors
from volcano_py.scheduler.framework.node_rules import DomainScore, LocalFilter, LocalScore, WholeFilter

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]


class ClassView:
    """What one class thinks of all nodes, up to a position in the log of changed columns."""

    __slots__ = (
        "all_rows",
        "constant",
        "domain_filters",
        "domain_scores",
        "filters",
        "future",
        "has_static",
        "idle",
        "masked",
        "need",
        "ok",
        "position",
        "promised",
        "refusal",
        "rows",
        "scores",
        "static",
        "static_batch",
        "static_order",
        "vector",
    )

    position: int
    vector: Floats
    rows: list[int]
    """The request, and the rows of it that must fit."""
    need: Floats
    all_rows: bool
    """Those rows as a column, and whether they are all there are."""
    static_order: Floats
    static_batch: Floats
    has_static: bool
    domain_filters: list[WholeFilter]
    domain_scores: list[DomainScore]
    """The DOMAIN rules that apply."""
    filters: list[LocalFilter]
    """The LOCAL filters that apply."""
    scores: list[LocalScore]
    """The LOCAL scores that apply."""
    static: Bools | None
    """Nodes that the STATIC filters accept; None: all."""
    ok: Bools
    """Accepted by STATIC and LOCAL filters."""
    idle: Bools
    future: Bools
    """Has room now; has room once releasing tasks are gone (the same array while nothing is promised)."""
    promised: bool
    masked: Floats
    """The sums of STATIC and LOCAL scores, order + (batch + constant); −inf where the task cannot go at once."""
    constant: float
    refusal: tuple[int, FitErrors] | None
