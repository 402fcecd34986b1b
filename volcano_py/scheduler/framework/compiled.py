"""The compiled kernels: the loops over nodes as machine code, by numba (`volcano-py[fast]`). Not in Volcano.

Every node is computed with the same operations in the same order as in `class_view.look`, so that the results are equal
bit by bit: no `fastmath`, no parallel sums. The functions are compiled when this module is imported, or loaded from
numba's cache on disk if there is a folder that numba may write to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from volcano_py.scheduler.framework.formulas import Formula
from volcano_py.scheduler.model.resource import EPS as _EPS

# Written out, because numba's cache depends on the text of this module only.
EPS = 0.1
POD_NUMBER, LEAST_ALLOCATED, MOST_ALLOCATED, BALANCED, FULLNESS, FULLNESS_MEAN, STATIC, CONSTANT, END_ORDER = range(9)
assert EPS == _EPS and tuple(Formula)[:9] == tuple(range(9)) and Formula.END_ORDER == END_ORDER

_F1, _F2, _I1, _I2, _B1 = "float64[::1]", "float64[:,::1]", "int64[::1]", "int64[:,::1]", "boolean[::1]"


def _compiled(result: str, *arguments: str) -> Callable[[Callable[..., Any]], Any]:
    """Decorator: compile a function for these types now, with the cache if there is a folder for it."""
    signature = f"{result}({', '.join(arguments)})"

    def decorate(function: Callable[..., Any]) -> Any:
        try:
            return numba.njit(signature, error_model="numpy", cache=True)(function)
        except RuntimeError:  # numba finds no folder for its cache that it may write to
            return numba.njit(signature, error_model="numpy")(function)

    return decorate


@numba.njit(error_model="numpy")
def _evenness(capacity0: float, capacity1: float, used0: float, used1: float) -> float:
    """How evenly cpu and memory are used, 0 to 100; a resource that the node does not have does not count."""
    if not (capacity0 > 0.0 and capacity1 > 0.0):
        return 100.0
    part0, part1 = min(used0 / capacity0, 1.0), min(used1 / capacity1, 1.0)
    return float(np.floor((1.0 - abs(part0 - part1) * 0.5) * 100.0))


@_compiled("void", _I1, "int64", _F2, _I2, _F2, _F2, _B1, _I2, _F1, _I1, "boolean", _B1, _B1, _B1, _F1)
def evaluate(
    nodes: Any,
    count: int,
    matrix: Any,
    operations: Any,
    constants: Any,
    statics: Any,
    static: Any,
    rows: Any,
    needs: Any,
    places: Any,
    future_differs: bool,
    ok: Any,
    idle: Any,
    future: Any,
    masked: Any,
) -> None:
    """Compute ok, idle, future and masked of the first `count` of `nodes`; the other arguments are a `Program`."""
    max_pods, kube_pods = places[0], places[1]
    nonzero, requested, capacity = places[2], places[3], places[4]
    for i in range(count):
        node = nodes[i]
        has_idle = has_future = True
        for k in range(rows.shape[0]):
            free = matrix[rows[k, 0], node]
            if not (needs[k] - free < EPS):
                has_idle = False
            if future_differs and not (needs[k] - (free + matrix[rows[k, 1], node] - matrix[rows[k, 2], node]) < EPS):
                has_future = False
        idle[node] = has_idle
        if future_differs:
            future[node] = has_future
        accepts = static[node] if static.shape[0] else True
        order = batch = share = full = 0.0
        over = False
        for k in range(operations.shape[0]):
            formula = operations[k, 0]
            a, b, c = constants[k, 0], constants[k, 1], constants[k, 2]
            if formula == POD_NUMBER:
                accepts = accepts and not (matrix[max_pods, node] <= matrix[kube_pods, node])
                if not (accepts and has_idle and has_future):
                    break
            elif formula in (LEAST_ALLOCATED, MOST_ALLOCATED):
                total = weights = 0.0
                for r in range(2):
                    have = matrix[capacity + r, node]
                    if have > 0.0:
                        weights += 1.0
                        wanted = matrix[nonzero + r, node] + (b if r == 0 else c)
                        if formula == LEAST_ALLOCATED:
                            total += np.floor(max(have - wanted, 0.0) * 100.0 / have)
                        else:
                            total += np.floor(min(wanted, have) * 100.0 / have)
                if weights > 0.0:
                    share += np.floor(total / weights) * a
            elif formula == BALANCED:
                have0, have1 = matrix[capacity, node], matrix[capacity + 1, node]
                used0, used1 = matrix[requested, node], matrix[requested + 1, node]
                change = _evenness(have0, have1, used0 + b, used1 + c) - _evenness(have0, have1, used0, used1)
                share += np.floor(change * 0.5 + 75.0) * a
            elif formula == FULLNESS:
                have = matrix[operations[k, 2], node]
                if have != 0.0:
                    wanted = matrix[operations[k, 1], node] + a
                    if wanted > have:
                        over = True
                    full += wanted * b / have
            elif formula == FULLNESS_MEAN:
                if not over and a > 0.0:
                    share += full / a * b
                full, over = 0.0, False
            elif formula == STATIC:
                share += statics[operations[k, 1], node]
            elif formula == CONSTANT:
                share += a
            elif formula == END_ORDER:
                order += share
                share = 0.0
            else:
                batch += share
                share = 0.0
        ok[node] = accepts
        masked[node] = order + batch if accepts and has_idle and has_future else -np.inf


@_compiled("int64", _F1, _I1)
def best_column(masked: Any, rank: Any) -> int:
    """The column with the highest score, among equals the one of the lowest rank; −1 if all scores are −inf."""
    best = -1
    top = -np.inf
    for node in range(masked.shape[0]):
        score = masked[node]
        if score > top or (score == top and best >= 0 and rank[node] < rank[best]):
            best, top = node, score
    return best
