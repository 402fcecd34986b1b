"""`vcctl jobflow`. Volcano: vcctl jobflow create|delete|get|list|describe."""

from __future__ import annotations

from typing import Any

import click

from volcano_py.api.kinds import JOBFLOW
from volcano_py.cli.columns import age
from volcano_py.cli.kind_commands import Kind, add_all

Manifest = dict[str, Any]


@click.group()
def jobflow() -> None:
    """Create, get, list, describe and delete JobFlows."""


def _cells(flow: Manifest) -> list[object]:
    metadata, status = flow["metadata"], flow.get("status") or {}
    return [metadata["name"], metadata.get("namespace", ""), (status.get("state") or {}).get("phase", ""), age(flow)]


def _wide_cells(flow: Manifest) -> list[object]:
    spec, status = flow.get("spec") or {}, flow.get("status") or {}
    done = len(status.get("completedJobs") or ())
    return [
        f"{done}/{len(spec.get('flows') or ())}",
        ",".join(status.get("runningJobs") or ()) or "<none>",
        ",".join(status.get("failedJobs") or ()) or "<none>",
        spec.get("jobRetainPolicy") or "retain",
    ]


KIND = Kind(
    JOBFLOW,
    ("Name", "Namespace", "Phase", "Age"),
    _cells,
    ("Completed", "Running", "Failed", "RetainPolicy"),
    _wide_cells,
    empty_status={"state": {}},
    forgiving=True,
)
add_all(jobflow, KIND)
