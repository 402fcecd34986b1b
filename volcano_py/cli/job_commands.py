"""Commands on a job, for `vcctl job` and the tools with a single command."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from volcano_py.api import batch
from volcano_py.api.kinds import COMMAND, JOB, ResourceType
from volcano_py.cli import dry_run, job_waits
from volcano_py.cli.connection import api_options, call
from volcano_py.cli.errors import Tool
from volcano_py.cli.output import print_object
from volcano_py.cli.waiting import wait_option

if TYPE_CHECKING:
    from volcano_py.kube.client import Client

Manifest = dict[str, Any]


def job_tool(
    program: str, help: str, awaited: str, act: Callable[[Client, str, str, bool, float], Awaitable[None]]
) -> click.Command:
    """A tool with one command on one job; -n is the name and -N the namespace, as in Volcano. `awaited`: what --wait
    waits for. `act`: client, namespace, name, whether to wait, and the timeout."""

    @click.command(program, cls=Tool, help=help)
    @click.option("-n", "--name", required=True, help="Name of the job.")
    @click.option("-N", "--namespace", default="default", show_default=True, help="Namespace of the job.")
    @wait_option(awaited)
    @api_options
    def main(name: str, namespace: str, wait: bool, timeout: float, kubeconfig: str, master: str) -> None:
        call("", kubeconfig, master, lambda client: act(client, namespace, name, wait, timeout))

    return main


def run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds --wait[=PHASE]; see `submit`."""
    return click.option(
        "--wait",
        "awaited",
        is_flag=False,
        flag_value=batch.COMPLETED,
        type=click.Choice(batch.PHASES),
        metavar="[=PHASE]",
        help="Wait until the job reaches this phase (default: Completed).",
    )(command)


class Submission(NamedTuple):
    """A job to create, with its options: see `output`, `dry_run`, and `run_options`."""

    manifest: Manifest
    namespace: str
    output: str | None
    dry_run: str | None
    awaited: str | None
    timeout: float


def submit(what: str, kubeconfig: str, master: str, job: Submission) -> None:
    """Create a job, or print the job that would be created; then wait for a phase if one is set."""
    if job.dry_run == "client":
        dry_run.run_on_client(what, kubeconfig, master, JOB, [job.manifest], job.output)
        return

    async def work(client: Client) -> None:
        if job.dry_run:
            await dry_run.run_on_server(client, JOB, [job.manifest], job.namespace, job.output)
            return
        created = await client.create(JOB, job.manifest, job.namespace)
        if job.output is None:
            click.echo(f"run job {created['metadata'].get('name', '')} successfully")
        else:
            print_object(JOB, created, job.output)
        if job.awaited:
            await job_waits.until_phase(client, created, job.awaited, job.timeout)

    call(what, kubeconfig, master, work)


async def delete(client: Client, namespace: str, name: str, message: str, wait: bool, timeout: float) -> None:
    """Delete a job, print `message`, and with `wait` wait until its pods are deleted."""
    await client.delete(JOB, name, namespace)
    click.echo(message)
    if wait:
        await job_waits.until_gone(client, namespace, name, timeout)


async def suspend(client: Client, namespace: str, name: str, wait: bool = False, timeout: float = 0.0) -> None:
    """Abort a job: its pods are deleted, and it can be resumed."""
    job = await client.get(JOB, name, namespace)
    await send(client, JOB, job, "AbortJob", namespace)
    if wait:
        await job_waits.until_phase(client, job, batch.ABORTED, timeout)


async def resume(client: Client, namespace: str, name: str, wait: bool = False, timeout: float = 0.0) -> None:
    """Resume an aborted job."""
    job = await client.get(JOB, name, namespace)
    await send(client, JOB, job, "ResumeJob", namespace)
    if wait:
        await job_waits.until_phase(client, job, batch.RUNNING, timeout, from_aborted=True)


async def send(client: Client, rt: ResourceType, target: Manifest, action: str, namespace: str) -> None:
    """Create the Command for an action on a job or a queue."""
    found = target["metadata"]
    reference = {
        "apiVersion": rt.api_version,
        "kind": rt.kind,
        "name": found.get("name", ""),
        "uid": found.get("uid", ""),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    command = {
        "apiVersion": COMMAND.api_version,
        "kind": "Command",
        "metadata": {"generateName": f"{found.get('name', '')}-{action.lower()}-", "ownerReferences": [reference]},
        "target": reference,
        "action": action,
    }
    await client.create(COMMAND, command, namespace)
