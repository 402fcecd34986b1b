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

from volcano_py.scheduler.framework.kernels.formulas import Formula
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


@numba.njit(error_model="numpy")
def _look(
    node: int,
    more: float,
    kube_more: float,
    matrix: Any,
    operations: Any,
    constants: Any,
    statics: Any,
    static: Any,
    rows: Any,
    needs: Any,
    places: Any,
    future_differs: bool,
) -> tuple[bool, bool, bool, float]:
    """ok, idle, future and score of one node with more tasks of the class on it; the other arguments are a `Program`.

    `more`: the number of additional tasks; `kube_more`: the same in kube-scheduler's view. The score is −inf where the
    task does not fit now.
    """
    max_pods, kube_pods = places[0], places[1]
    nonzero, requested, capacity = places[2], places[3], places[4]
    has_idle = has_future = True
    for k in range(rows.shape[0]):
        free = matrix[rows[k, 0], node] - needs[k] * more
        if not (needs[k] - free < EPS):
            has_idle = False
        if future_differs and not (needs[k] - (free + matrix[rows[k, 1], node] - matrix[rows[k, 2], node]) < EPS):
            has_future = False
    accepts = static[node] if static.shape[0] else True
    order = batch = share = full = 0.0
    over = False
    for k in range(operations.shape[0]):
        formula = operations[k, 0]
        a, b, c = constants[k, 0], constants[k, 1], constants[k, 2]
        if formula == POD_NUMBER:
            accepts = accepts and not (matrix[max_pods, node] <= matrix[kube_pods, node] + kube_more)
            if not (accepts and has_idle and has_future):
                break
        elif formula in (LEAST_ALLOCATED, MOST_ALLOCATED):
            total = weights = 0.0
            for r in range(2):
                have = matrix[capacity + r, node]
                if have > 0.0:
                    request = b if r == 0 else c
                    weights += 1.0
                    wanted = matrix[nonzero + r, node] + request * kube_more + request
                    if formula == LEAST_ALLOCATED:
                        total += np.floor(max(have - wanted, 0.0) * 100.0 / have)
                    else:
                        total += np.floor(min(wanted, have) * 100.0 / have)
            if weights > 0.0:
                share += np.floor(total / weights) * a
        elif formula == BALANCED:
            have0, have1 = matrix[capacity, node], matrix[capacity + 1, node]
            used0 = matrix[requested, node] + b * kube_more
            used1 = matrix[requested + 1, node] + c * kube_more
            change = _evenness(have0, have1, used0 + b, used1 + c) - _evenness(have0, have1, used0, used1)
            share += np.floor(change * 0.5 + 75.0) * a
        elif formula == FULLNESS:
            have = matrix[operations[k, 2], node]
            if have != 0.0:
                wanted = matrix[operations[k, 1], node] + a * more + a
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
    return accepts, has_idle, has_future, order + batch if accepts and has_idle and has_future else -np.inf


_PROGRAM = (_F2, _I2, _F2, _F2, _B1, _I2, _F1, _I1, "boolean")


@_compiled("void", _I1, "int64", *_PROGRAM, _B1, _B1, _B1, _F1)
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
    for i in range(count):
        node = nodes[i]
        accepts, has_idle, has_future, score = _look(
            node,
            0.0,
            0.0,
            matrix,
            operations,
            constants,
            statics,
            static,
            rows,
            needs,
            places,
            future_differs,
        )
        ok[node] = accepts
        idle[node] = has_idle
        if future_differs:
            future[node] = has_future
        masked[node] = score


@numba.njit(error_model="numpy")
def _before(scores: Any, rank: Any, nodes: Any, i: int, j: int) -> bool:
    """Whether the entry i of a heap is better than the entry j."""
    if scores[i] != scores[j]:
        return bool(scores[i] > scores[j])
    if rank[nodes[i]] != rank[nodes[j]]:
        return bool(rank[nodes[i]] < rank[nodes[j]])
    return bool(nodes[i] < nodes[j])


@numba.njit(error_model="numpy")
def _sift_down(scores: Any, rank: Any, nodes: Any, has: Any, i: int, size: int, best_first: bool) -> None:
    """Restore the order of a heap below the entry i."""
    while True:
        child = 2 * i + 1
        if child >= size:
            return
        if child + 1 < size and _before(scores, rank, nodes, child + 1, child) == best_first:
            child += 1
        if _before(scores, rank, nodes, child, i) != best_first:
            return
        scores[i], scores[child] = scores[child], scores[i]
        nodes[i], nodes[child] = nodes[child], nodes[i]
        has[i], has[child] = has[child], has[i]
        i = child


@_compiled("int64", _I1, _F1, _I1, *_PROGRAM, "boolean")
def places_of_run(
    chosen: Any,
    masked: Any,
    rank: Any,
    matrix: Any,
    operations: Any,
    constants: Any,
    statics: Any,
    static: Any,
    rows: Any,
    needs: Any,
    places: Any,
    future_differs: bool,
    kube_moves: bool,
) -> int:
    """Fill `chosen` with the best node for each of a run of equal tasks; returns for how many one was found.

    `masked`: the scores without tasks of the run; then a `Program`.
    """
    most = chosen.shape[0]
    scores, nodes = np.empty(most), np.empty(most, dtype=np.int64)
    has = np.zeros(most)
    size = 0
    for node in range(masked.shape[0]):  # no other nodes than the `most` best ones can get a task
        score = masked[node]
        if score == -np.inf:
            continue
        if size < most:
            scores[size], nodes[size] = score, node
            size += 1
            if size == most:
                for i in range(size // 2 - 1, -1, -1):
                    _sift_down(scores, rank, nodes, has, i, size, False)
        elif score > scores[0] or (score == scores[0] and rank[node] < rank[nodes[0]]):
            scores[0], nodes[0] = score, node
            _sift_down(scores, rank, nodes, has, 0, size, False)
    for i in range(size // 2 - 1, -1, -1):
        _sift_down(scores, rank, nodes, has, i, size, True)
    found = 0
    while found < most and size > 0:
        node = nodes[0]
        chosen[found] = node
        found += 1
        has[0] += 1.0
        _, _, _, score = _look(
            node,
            has[0],
            has[0] if kube_moves else 0.0,
            matrix,
            operations,
            constants,
            statics,
            static,
            rows,
            needs,
            places,
            future_differs,
        )
        scores[0] = score
        if score == -np.inf:
            size -= 1
            scores[0], nodes[0], has[0] = scores[size], nodes[size], has[size]
        _sift_down(scores, rank, nodes, has, 0, size, True)
    return found


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
