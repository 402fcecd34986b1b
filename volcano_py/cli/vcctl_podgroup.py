"""`vcctl podgroup`: the gangs of the scheduler. Not in Volcano."""

from __future__ import annotations

from typing import Any

import click

from volcano_py.api.kinds import PODGROUP
from volcano_py.cli.columns import age
from volcano_py.cli.job_waits import why_pending
from volcano_py.cli.kind_commands import Kind, add_delete, add_describe, add_get, add_list

Manifest = dict[str, Any]


@click.group()
def podgroup() -> None:
    """Get, list, describe and delete PodGroups."""


def _cells(group: Manifest) -> list[object]:
    metadata, spec, status = group["metadata"], group.get("spec") or {}, group.get("status") or {}
    return [
        metadata["name"],
        metadata.get("namespace", ""),
        status.get("phase", ""),
        spec.get("queue", ""),
        spec.get("minMember", 0),
        status.get("running", 0),
        age(group),
    ]


def _wide_cells(group: Manifest) -> list[object]:
    spec, status = group.get("spec") or {}, group.get("status") or {}
    owners = [f"{o['kind']}/{o['name']}" for o in group["metadata"].get("ownerReferences") or ()]
    return [
        spec.get("priorityClassName") or "<none>",
        status.get("succeeded", 0),
        status.get("failed", 0),
        ",".join(owners) or "<none>",
        why_pending([group]) or "<none>",
    ]


KIND = Kind(
    PODGROUP,
    ("Name", "Namespace", "Phase", "Queue", "MinMember", "Running", "Age"),
    _cells,
    ("PriorityClass", "Succeeded", "Failed", "Owner", "Reason"),
    _wide_cells,
)
for add in (add_get, add_list, add_describe, add_delete):
    add(podgroup, KIND)
