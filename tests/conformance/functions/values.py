"""Conversions between the data's values and the project's, and their equality."""

from __future__ import annotations

import math
from typing import Any

from tests.conformance.functions.adapter import Data
from volcano_py.api.codec import from_manifest
from volcano_py.api.core import Pod
from volcano_py.scheduler.model.resource import INFINITY, ZERO, Resource
from volcano_py.scheduler.model.resource_names import PODS


def alike(got: Any, wanted: Any) -> bool:
    """Whether a result equals the recorded one; empty maps may be left out, lists of names have no order."""
    if isinstance(got, Resource):
        return alike(resource_out(got), wanted)
    if isinstance(wanted, str) and wanted in ("+Inf", "NaN"):
        return isinstance(got, float) and (math.isinf(got) or math.isnan(got))
    if isinstance(wanted, bool) or wanted is None:
        return bool(got == wanted) or (wanted is None and got in ([], None))
    if isinstance(wanted, int | float):
        return isinstance(got, int | float) and abs(got - wanted) <= 1e-6 * max(1.0, abs(wanted))
    if isinstance(wanted, dict):
        if not isinstance(got, dict):
            return False
        a, b = _present(got), _present(wanted)
        return set(a) == set(b) and all(alike(a[k], b[k]) for k in b)
    if isinstance(wanted, list):
        got = list(got) if isinstance(got, list | tuple) else got
        if not isinstance(got, list) or len(got) != len(wanted):
            return got is None and not wanted
        if wanted and all(isinstance(w, str) for w in wanted):
            return sorted(map(str, got)) == sorted(wanted)
        return all(map(alike, got, wanted))
    return bool(got == wanted)


def _present(value: Data) -> Data:
    """Without empty maps, which the data may leave out."""
    return {k: v for k, v in value.items() if v not in ({}, None)}


def resource(data: Data | None) -> Resource:
    """An amount; a missing one is empty."""
    data = data or {}
    scalars = data.get("scalars")
    number = lambda v: math.inf if v == "+Inf" else float(v)  # noqa: E731
    return Resource(
        number(data.get("milli_cpu", 0)),
        number(data.get("memory", 0)),
        None if scalars is None else {k: float(v) for k, v in scalars.items()},
        int(data.get("max_task_num", 0)),
    )


def maybe(data: Data | None) -> Resource | None:
    """An amount, or a nil pointer."""
    return None if data is None else resource(data)


def resource_out(r: Resource) -> Data:
    out: Data = {"milli_cpu": r.milli_cpu, "memory": r.memory}
    if r.scalars is not None:
        out["scalars"] = r.scalars
    if r.max_task_num:
        out["max_task_num"] = r.max_task_num
    return out


def dense(amount: Data | None) -> Data:
    """An amount as a column of numbers: a scalar that is 0 and a missing one are equal."""
    amount = amount or {}
    scalars = {k: v for k, v in (amount.get("scalars") or {}).items() if v}
    return {"milli_cpu": amount.get("milli_cpu", 0), "memory": amount.get("memory", 0), "scalars": scalars}


def default(value: int) -> float:
    """The meaning of a missing scalar."""
    return INFINITY if value == -1 else ZERO


def amounts(r: Resource, *, pods: bool = False) -> dict[str, str]:
    """An amount as in a manifest; `pods` are part of a node's, not of a container's."""
    written = {"cpu": f"{r.milli_cpu:.0f}m", "memory": f"{r.memory:.0f}"}
    for name, amount in (r.scalars or {}).items():
        if name != PODS:
            written[name] = f"{amount:.0f}m"
        elif pods:
            written[name] = f"{amount:.0f}"
    return written


def pod(data: Data | None) -> Pod:
    found: Pod = from_manifest(Pod, data or {})
    return found
