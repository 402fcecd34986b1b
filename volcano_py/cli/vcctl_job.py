"""`vcctl job`. Volcano: vcctl job run|list|view|suspend|resume|delete; `logs`, --wait and --watch are additions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from volcano_py.api.kinds import EVENT, JOB
from volcano_py.cli import job_commands, job_logs, job_table, job_view
from volcano_py.cli.connection import api_options, call, exit_failed
from volcano_py.cli.dry_run import dry_run_option
from volcano_py.cli.errors import describe_os_error
from volcano_py.cli.job_manifest import Shape, from_file, from_flags, shape_options
from volcano_py.cli.listing import show, watch_option
from volcano_py.cli.output import output_option, print_object
from volcano_py.cli.selection import selector_option
from volcano_py.cli.waiting import Seconds, timeout_option, wait_option

if TYPE_CHECKING:
    from volcano_py.kube.client import Client


@click.group()
def job() -> None:
    """Run, list, view, suspend, resume and delete jobs; print their logs."""


@job.command()
@shape_options()
@click.option("-n", "--namespace", default="default", show_default=True, help="Namespace of the job.")
@click.option("-N", "--name", default="", help="Name of the job.")
@click.option("-f", "--filename", default="", help="Path to a YAML file with one Job, instead of the other flags.")
@output_option("json", "yaml", "name")
@dry_run_option
@job_commands.run_options
@timeout_option
@api_options
def run(
    namespace: str,
    name: str,
    filename: str,
    output: str | None,
    dry_run: str | None,
    awaited: str | None,
    timeout: float,
    kubeconfig: str,
    master: str,
    **shape: str | int,
) -> None:
    """Run a job from flags or from a file."""
    what = "run job"
    if not name and not filename:
        exit_failed(what, "job name cannot be left blank")
    try:
        if filename:
            manifest = from_file(filename)
            manifest["metadata"] = {**(manifest.get("metadata") or {}), "namespace": namespace}
        else:
            manifest = from_flags(name, namespace, Shape(**shape))  # type: ignore[arg-type]
    except OSError as e:
        exit_failed(what, describe_os_error(e))
    except ValueError as e:
        exit_failed(what, str(e))
    submission = job_commands.Submission(manifest, namespace, output, dry_run, awaited, timeout)
    job_commands.submit(what, kubeconfig, master, submission)


@job.command("list")
@click.option("-q", "--queue", default="", help="Select jobs of this queue.")
@click.option("-n", "--namespace", default="default", show_default=True, help="Namespace of the job.")
@click.option("-S", "--scheduler", default="", help="Select jobs of this scheduler.")
@click.option("-A", "--all-namespaces", is_flag=True, help="List the objects of all namespaces.")
@selector_option
@output_option()
@watch_option()
@api_options
def list_(
    queue: str,
    namespace: str,
    scheduler: str,
    all_namespaces: bool,
    selector: str,
    label_selector: str,
    output: str | None,
    watch: bool,
    kubeconfig: str,
    master: str,
) -> None:
    """List jobs."""
    listing = job_table.listing(
        None if all_namespaces else namespace,
        selector,
        label_selector,
        lambda j: (
            (not scheduler or j.get("spec", {}).get("schedulerName") == scheduler)
            and (not queue or j.get("spec", {}).get("queue") == queue)
        ),
    )
    call("list job", kubeconfig, master, lambda client: show(client, listing, output, watch))


_name = click.option("-N", "--name", required=True, help="Name of the job.")
_namespace = click.option("-n", "--namespace", default="default", show_default=True, help="Namespace of the job.")


@job.command()
@_namespace
@_name
@wait_option("Wait until the job and its pods are deleted.")
@api_options
def delete(namespace: str, name: str, wait: bool, timeout: float, kubeconfig: str, master: str) -> None:
    """Delete a job."""
    message = f"delete job {name} successfully"
    call(
        "delete job",
        kubeconfig,
        master,
        lambda client: job_commands.delete(client, namespace, name, message, wait, timeout),
    )


@job.command()
@_namespace
@_name
@wait_option("Wait until the job is Aborted.")
@api_options
def suspend(namespace: str, name: str, wait: bool, timeout: float, kubeconfig: str, master: str) -> None:
    """Abort a job; it can be resumed."""
    call(
        "suspend job",
        kubeconfig,
        master,
        lambda client: job_commands.suspend(client, namespace, name, wait, timeout),
    )


@job.command()
@_namespace
@_name
@wait_option("Wait until the job is Running.")
@api_options
def resume(namespace: str, name: str, wait: bool, timeout: float, kubeconfig: str, master: str) -> None:
    """Resume an aborted job."""
    call(
        "resume job",
        kubeconfig,
        master,
        lambda client: job_commands.resume(client, namespace, name, wait, timeout),
    )


@job.command()
@_namespace
@_name
@output_option("json", "yaml", "name")
@api_options
def view(namespace: str, name: str, output: str | None, kubeconfig: str, master: str) -> None:
    """Describe a job and list its events."""
    call("view job", kubeconfig, master, lambda client: view_job(client, namespace, name, output=output))


async def view_job(
    client: Client, namespace: str, name: str, conditions: bool = True, output: str | None = None
) -> None:
    """Print a job with its events as text, or as an object."""
    found = await client.get(JOB, name, namespace)
    if output is not None:
        print_object(JOB, found, output)
        return
    events = await client.list(EVENT, namespace)
    mine = f"{found['metadata'].get('name', '')}."
    shown = [e for e in events if e["metadata"]["name"].startswith(mine)]
    click.echo("\n".join((*job_view.describe(found, conditions), *job_view.events(shown))))


@job.command()
@_namespace
@_name
@click.option("-t", "--task", default="", help="Select pods of this task.")
@click.option("-i", "--index", type=int, help="Select the pod with this index in its task.")
@click.option("-c", "--container", default="", help="Name of the container (default: the first of the pod).")
@click.option("-f", "--follow", is_flag=True, help="Print new lines until the job has finished.")
@click.option("-p", "--previous", is_flag=True, help="Print the logs of the previous run of the container.")
@click.option("--tail", type=click.IntRange(0), help="Number of most recent lines of each pod to print.")
@click.option("--since", type=Seconds(), help="Print only lines newer than this duration, such as 5m.")
@click.option("--timestamps", is_flag=True, help="Print the timestamp of each line.")
@click.option(
    "--prefix/--no-prefix", default=None, help="Print the pod name of each line (default: if there are several pods)."
)
@api_options
def logs(
    namespace: str,
    name: str,
    task: str,
    index: int | None,
    container: str,
    follow: bool,
    previous: bool,
    tail: int | None,
    since: float | None,
    timestamps: bool,
    prefix: bool | None,
    kubeconfig: str,
    master: str,
) -> None:
    """Print the logs of a job's pods."""
    query: dict[str, str | int] = {}
    if tail is not None:
        query["tailLines"] = tail
    if since:
        query["sinceSeconds"] = max(1, round(since))
    if previous:
        query["previous"] = "true"
    if timestamps:
        query["timestamps"] = "true"
    selection = job_logs.Selection(task, index, container, query)
    call(
        "get the logs of the job",
        kubeconfig,
        master,
        lambda client: job_logs.show(client, namespace, name, selection, follow, prefix),
    )
