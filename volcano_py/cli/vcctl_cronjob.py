"""`vcctl cronjob`: CronJobs (batch.volcano.sh). Not in Volcano; suspend and resume set `spec.suspend`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from volcano_py.api.kinds import CRONJOB
from volcano_py.cli.columns import age, since
from volcano_py.cli.connection import api_options, call
from volcano_py.cli.kind_commands import Kind, add_all, place

if TYPE_CHECKING:
    from volcano_py.kube.client import Client

Manifest = dict[str, Any]


@click.group()
def cronjob() -> None:
    """Create, get, list, describe, suspend, resume and delete CronJobs."""


def _cells(cron: Manifest) -> list[object]:
    metadata, spec, status = cron["metadata"], cron.get("spec") or {}, cron.get("status") or {}
    last = status.get("lastScheduleTime")
    return [
        metadata["name"],
        metadata.get("namespace", ""),
        spec.get("schedule", ""),
        str(bool(spec.get("suspend"))).lower(),
        len(status.get("active") or ()),
        since(last) if last else "<none>",
        age(cron),
    ]


def _wide_cells(cron: Manifest) -> list[object]:
    spec, status = cron.get("spec") or {}, cron.get("status") or {}
    active = [reference.get("name", "") for reference in status.get("active") or ()]
    return [spec.get("timeZone") or "<none>", spec.get("concurrencyPolicy") or "Allow", ",".join(active) or "<none>"]


KIND = Kind(
    CRONJOB,
    ("Name", "Namespace", "Schedule", "Suspend", "Active", "LastSchedule", "Age"),
    _cells,
    ("TimeZone", "Concurrency", "Jobs"),
    _wide_cells,
)
add_all(cronjob, KIND)

_name = click.option("-N", "--name", required=True, help="Name of the CronJob.")
_namespace = click.option("-n", "--namespace", default="default", show_default=True, help="Namespace of the objects.")


@cronjob.command()
@_namespace
@_name
@api_options
def suspend(namespace: str, name: str, kubeconfig: str, master: str) -> None:
    """Stop creating jobs; running jobs continue."""
    call("suspend cronjob", kubeconfig, master, lambda client: _set(client, namespace, name, True))


@cronjob.command()
@_namespace
@_name
@api_options
def resume(namespace: str, name: str, kubeconfig: str, master: str) -> None:
    """Continue to create jobs."""
    call("resume cronjob", kubeconfig, master, lambda client: _set(client, namespace, name, False))


async def _set(client: Client, namespace: str, name: str, suspended: bool) -> None:
    changed = await client.patch(CRONJOB, name, {"spec": {"suspend": suspended}}, namespace)
    click.echo(f"{'Suspended' if suspended else 'Resumed'} CronJob: {place(changed)}")
