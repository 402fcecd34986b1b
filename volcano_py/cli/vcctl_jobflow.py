"""`vcctl jobflow`. Volcano: vcctl jobflow create|delete|get|list|describe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from volcano_py.api.flow import FAILED, PENDING, SUCCEED, TERMINATING
from volcano_py.api.kinds import JOBFLOW
from volcano_py.cli.columns import age
from volcano_py.cli.follow import Followed, Source
from volcano_py.cli.kind_commands import Kind, add_all
from volcano_py.cli.waiting import State, wait

if TYPE_CHECKING:
    from volcano_py.kube.client import Client

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


async def _until_done(client: Client, flows: list[Manifest], timeout: float) -> None:
    """Wait until each JobFlow has the phase Succeed. Raises NotReached if one fails."""
    for flow in flows:
        name, namespace = flow["metadata"]["name"], flow["metadata"]["namespace"]
        await wait(client, f"jobflow {namespace}/{name}", [Source.one(JOBFLOW, name, namespace)], _state, timeout)


def _state(followed: Followed) -> State:
    flows = followed.objects()
    if not flows:
        return State("gone", failed="was deleted")
    (flow,) = flows
    status, total = flow.get("status") or {}, len((flow.get("spec") or {}).get("flows") or ())
    phase = (status.get("state") or {}).get("phase") or PENDING
    done = len(status.get("completedJobs") or ())
    failed = ", ".join(status.get("failedJobs") or ())
    text = f"{phase}, {done} of {total} jobs completed" + (f", failed: {failed}" if failed else "")
    named = f"-n {flow['metadata']['namespace']} -N {flow['metadata']['name']}"
    failed = f"is {text}; see `vcctl jobflow describe {named}`" if phase in (FAILED, TERMINATING) else ""
    return State(text, done, total, reached=phase == SUCCEED, failed=failed)


KIND = Kind(
    JOBFLOW,
    ("Name", "Namespace", "Phase", "Age"),
    _cells,
    ("Completed", "Running", "Failed", "RetainPolicy"),
    _wide_cells,
    empty_status={"state": {}},
    forgiving=True,
    until_done=_until_done,
)
add_all(jobflow, KIND)
