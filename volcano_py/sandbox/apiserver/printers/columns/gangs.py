"""Columns of PodGroups and Workloads of scheduling.k8s.io. Kubernetes 1.36 prints only name and age."""

from __future__ import annotations

from typing import Any

from volcano_py.sandbox.apiserver.printers.cells import AGE, NAME, Column, Printer, age
from volcano_py.sandbox.apiserver.printers.columns.core import name

Object = dict[str, Any]


def _policy(obj: Object) -> str:
    policy = obj["spec"].get("schedulingPolicy") or {}
    gang = policy.get("gang")
    return f"gang/{gang.get('minCount', 0)}" if gang is not None else "basic"


def _group(obj: Object) -> list[Any]:
    conditions = (obj.get("status") or {}).get("conditions") or []
    scheduled: Object = next((c for c in conditions if c["type"] == "PodGroupScheduled"), {})
    topology = (obj["spec"].get("schedulingConstraints") or {}).get("topology") or []
    return [
        name(obj),
        _policy(obj),
        scheduled.get("status", ""),
        scheduled.get("reason", ""),
        age(obj),
        topology[0]["key"] if topology else "<none>",
        obj["spec"].get("disruptionMode") or "<none>",
        obj["spec"].get("priority", 0),
    ]


def _workload(obj: Object) -> list[Any]:
    controller = obj["spec"].get("controllerRef")
    return [
        name(obj),
        f"{controller['kind']}/{controller['name']}" if controller else "<none>",
        ",".join(template["name"] for template in obj["spec"].get("podGroupTemplates") or []),
        age(obj),
    ]


PRINTERS = {
    "podgroups.scheduling.k8s.io": Printer(
        (
            NAME,
            Column("Policy"),
            Column("Scheduled"),
            Column("Reason"),
            AGE,
            Column("Topology", priority=1),
            Column("Disruption", priority=1),
            Column("Priority", "integer", priority=1),
        ),
        _group,
    ),
    "workloads.scheduling.k8s.io": Printer((NAME, Column("Controller"), Column("Templates"), AGE), _workload),
}
