"""The search for a node: why nodes reject, and which accepting node is best."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.conformance.functions.adapter import Adapter, Adapters, Data
from tests.conformance.functions.opened import node, opened, pod
from volcano_py.scheduler.framework.search.fit_errors import FitCode, FitErrors, Reason
from volcano_py.scheduler.framework.search.node_view import NodeView
from volcano_py.scheduler.framework.session import Session

_TASK = pod("ns/task", uid="task")


def _fit_errors(data: Data) -> FitErrors:
    """The rejections in the data, as a histogram."""
    counts: dict[str, int] = {}
    nodes = data.get("nodes") or {}
    unresolvable = []
    for rejected in nodes.values():
        codes = []
        for status in rejected.get("status") or ():
            counts[status["Reason"]] = counts.get(status["Reason"], 0) + 1
            codes.append(status.get("Code", 0))
        unresolvable.append(FitCode.UNRESOLVABLE in codes)
    error = data.get("err") or ""
    if error.startswith("0/") and error.endswith("nodes are unavailable"):
        error = ""
    made = FitErrors(counts, len(nodes), np.array(unresolvable, dtype=bool) if any(unresolvable) else None, error)
    made.hyper_node = data.get("hyper_node") or ""
    return made


def _fit_errors_out(errors: FitErrors) -> Data:
    return {
        "counts": errors.counts,
        "nodes": errors.nodes,
        "unresolvable": [] if errors.unresolvable is None else np.flatnonzero(errors.unresolvable).tolist(),
        "error": errors.error,
        "hyper_node": errors.hyper_node,
    }


def _unresolvable(r: Data, _: list[Any]) -> list[Any]:
    bad = _fit_errors(r).unresolvable
    names = list(r.get("nodes") or {})
    return [[] if bad is None else [n for n, b in zip(names, bad, strict=True) if b]]


def _set_node_error(r: Data, a: list[Any]) -> list[Any]:
    """One more node rejects: all rejections are computed again. Plain text is an error."""
    given = {name: rejected["status"] for name, rejected in (r.get("nodes") or {}).items()}
    given[a[0]] = a[1].get("status") or [{"Code": FitCode.ERROR, "Reason": a[1]["error"]}]

    def register(session: Session) -> None:
        def call(_: Any, on: NodeView) -> Reason:
            (status,) = given[on.name]
            return Reason(status["Reason"], FitCode(status["Code"]))

        session.add_predicate(call)

    session = opened([*(node(name) for name in given), _TASK], register=register)
    found = session.placement.fit_errors(session.cluster.tasks["ns/task"], check_capacity=False)
    found.error, found.hyper_node = r.get("err") or "", r.get("hyper_node") or ""
    return [_fit_errors_out(found)]


def _set(field: str) -> Adapter:
    def call(r: Data, a: list[Any]) -> list[Any]:
        errors = _fit_errors(r)
        setattr(errors, field, a[0])
        return [_fit_errors_out(errors)]

    return Adapter(call, _errors_after)


def _errors_after(expected: Data) -> list[Any]:
    return [_fit_errors_out(_fit_errors(expected["receiver_after"]))]


def _best(_: Any, a: list[Any]) -> list[Any]:
    rates = {n["name"]: float(score) for score, nodes in a[0].items() for n in nodes}

    def register(session: Session) -> None:
        session.add_node_order(lambda _, on: rates[on.name])

    session = opened([*(node(name) for name in rates), _TASK], register=register)
    task = session.cluster.tasks["ns/task"]
    best = session.placement.best(task, check_capacity=False)
    if best is None:
        return [None, 0]
    rate = session.placement.scores_of(task, np.array([best])).item(0)
    return [{"name": session.table.names[best], "ready": False}, rate]


ADAPTERS: Adapters = {
    "api.FitErrors.Error": lambda r, a: [str(_fit_errors(r))],
    "api.FitErrors.GetUnschedulableAndUnresolvableNodes": _unresolvable,
    "api.FitErrors.SetError": _set("error"),
    "api.FitErrors.SetHyperNode": _set("hyper_node"),
    "api.FitErrors.SetNodeError": Adapter(_set_node_error, _errors_after),
    "api.FitError.Reasons": lambda r, a: [list(_fit_errors({"nodes": {"": r}}).counts)],
    "util.SelectBestNodeAndScore": _best,
}
