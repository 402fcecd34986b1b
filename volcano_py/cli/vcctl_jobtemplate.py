"""`vcctl jobtemplate`. Volcano: vcctl jobtemplate create|delete|get|list|describe."""

from __future__ import annotations

from typing import Any

import click

from volcano_py.api.kinds import JOBTEMPLATE
from volcano_py.cli.columns import age
from volcano_py.cli.kind_commands import Kind, add_all

Manifest = dict[str, Any]


@click.group()
def jobtemplate() -> None:
    """Create, get, list, describe and delete JobTemplates."""


def _cells(template: Manifest) -> list[object]:
    return [template["metadata"]["name"], template["metadata"].get("namespace", "")]


def _wide_cells(template: Manifest) -> list[object]:
    spec = template.get("spec") or {}
    tasks = spec.get("tasks") or ()
    made = (template.get("status") or {}).get("jobDependsOnList") or ()
    return [
        spec.get("queue") or "<none>",
        ",".join(task.get("name", "") for task in tasks) or "<none>",
        sum(task.get("replicas", 0) for task in tasks),
        len(made),
        age(template),
    ]


KIND = Kind(
    JOBTEMPLATE,
    ("Name", "Namespace"),
    _cells,
    ("Queue", "Tasks", "Replicas", "Jobs", "Age"),
    _wide_cells,
    forgiving=True,
)
add_all(jobtemplate, KIND)
