"""Columns of PodGroups, CompositePodGroups and Workloads of scheduling.k8s.io."""

from __future__ import annotations

from typing import Any

from volcano_py.sandbox.apiserver.printers.cells import AGE, NAME, Column, Printer, age
from volcano_py.sandbox.apiserver.printers.columns.core import name

Object = dict[str, Any]

_SCHEDULED = ("PodGroupInitiallyScheduled", "PodGroupScheduled")
"""The condition in 1.37, and in 1.36."""


def _policy(obj: Object) -> str:
    return "Basic" if (obj["spec"].get("schedulingPolicy") or {}).get("gang") is None else "Gang"


def _workload_of(obj: Object) -> str:
    spec = obj["spec"]
    reference = spec.get("workloadRef") or (spec.get("podGroupTemplateRef") or {}).get("workload") or {}
    return str(reference.get("workloadName", "<none>"))


def _status(obj: Object) -> str:
    conditions = {row["type"]: row for row in (obj.get("status") or {}).get("conditions") or []}
    if "DisruptionTarget" in conditions:
        return str(conditions["DisruptionTarget"].get("reason", ""))
    found = next((conditions[type_] for type_ in _SCHEDULED if type_ in conditions), None)
    if found is None:
        return "Pending"
    return "Scheduled" if found["status"] == "True" else "Unschedulable"


def _group(obj: Object) -> list[Any]:
    return [name(obj), _policy(obj), _workload_of(obj), _status(obj), age(obj)]


def _composite(obj: Object) -> list[Any]:
    return [name(obj), _policy(obj), _workload_of(obj), age(obj)]


def _workload(obj: Object) -> list[Any]:
    return [name(obj), age(obj)]


_POLICY, _WORKLOAD = Column("Policy"), Column("Workload")
PRINTERS = {
    "podgroups.scheduling.k8s.io": Printer((NAME, _POLICY, _WORKLOAD, Column("Status"), AGE), _group),
    "compositepodgroups.scheduling.k8s.io": Printer((NAME, _POLICY, _WORKLOAD, AGE), _composite),
    "workloads.scheduling.k8s.io": Printer((NAME, AGE), _workload),
}
