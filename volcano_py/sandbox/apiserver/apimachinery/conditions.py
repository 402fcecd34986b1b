"""Validation of a list of metav1.Condition. Kubernetes: apimachinery/pkg/apis/meta/v1/validation."""

from __future__ import annotations

import re
from typing import Any

from volcano_py.sandbox.apiserver.apimachinery.errors import (
    Cause,
    duplicate,
    invalid_value,
    required,
    too_long,
    unsupported,
)
from volcano_py.sandbox.apiserver.apimachinery.metadata import qualified_errors

_REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_REASON_TEXT = (
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
    "characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or "
    "'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is "
    "'[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')"
)
_STATUSES = ("False", "True", "Unknown")
_LONGEST = {"reason": 1024, "message": 32 * 1024}


def condition_causes(conditions: list[dict[str, Any]], path: str) -> list[Cause]:
    """The errors in conditions."""
    out: list[Cause] = []
    known: set[str] = set()
    for index, condition in enumerate(conditions):
        at = f"{path}[{index}]"
        kind = condition.get("type", "")
        if kind in known:
            out.append(duplicate(at, kind))
        known.add(kind)
        if not kind:
            out.append(required(f"{at}.type", "is required"))
        else:
            out += [invalid_value(f"{at}.type", kind, text) for text in qualified_errors(kind)]
        out += _fields(condition, at)
    return out


def _fields(condition: dict[str, Any], at: str) -> list[Cause]:
    out: list[Cause] = []
    status, reason = condition.get("status", ""), condition.get("reason", "")
    if not status:
        out.append(required(f"{at}.status"))
    elif status not in _STATUSES:
        out.append(unsupported(f"{at}.status", status, list(_STATUSES)))
    generation = condition.get("observedGeneration", 0)
    if generation < 0:
        out.append(invalid_value(f"{at}.observedGeneration", generation, "must be greater than or equal to zero"))
    if not condition.get("lastTransitionTime"):
        out.append(required(f"{at}.lastTransitionTime"))
    if not reason:
        out.append(required(f"{at}.reason"))
    elif not _REASON.fullmatch(reason):
        out.append(invalid_value(f"{at}.reason", reason, _REASON_TEXT))
    for field, longest in _LONGEST.items():
        if len(condition.get(field, "").encode()) > longest:
            out.append(too_long(f"{at}.{field}", longest))
    return out
