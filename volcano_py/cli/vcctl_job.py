"""`vcctl job`. Volcano: vcctl job run|list|view|suspend|resume|delete."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import yaml

from volcano_py.api import names
from volcano_py.api.kinds import COMMAND, EVENT, JOB
from volcano_py.cli import job_view
from volcano_py.cli.columns import line, widest
from volcano_py.cli.connection import api_options, call, give_up
from volcano_py.cli.errors import in_words
from volcano_py.kube.client import Client

Manifest = dict[str, Any]
_DEFAULT_RESOURCES = "cpu=1000m,memory=100Mi"
_HEADER = (
    "Name",
    "Creation",
    "Phase",
    "JobType",
    "Replicas",
    "Min",
    "Pending",
    "Running",
    "Succeeded",
    "Failed",
    "Unknown",
    "RetryCount",
)
_WIDTHS = (15, 12, 12, 12, 6, 10, 10, 12, 10, 12, 10)


@click.group()
def job() -> None:
    """Run, list, view, suspend, resume and delete jobs."""


@job.command()
@click.option("-i", "--image", default="busybox", show_default=True)
@click.option("-n", "--namespace", default="default", show_default=True)
@click.option("-N", "--name", default="", help="Name of the job.")
@click.option("-m", "--min", "minimum", type=int, default=1, show_default=True, help="Pods that must run together.")
@click.option("-r", "--replicas", type=int, default=1, show_default=True)
@click.option("-R", "--requests", default=_DEFAULT_RESOURCES, show_default=True)
@click.option("-L", "--limits", default=_DEFAULT_RESOURCES, show_default=True)
@click.option("-S", "--scheduler", default="volcano", show_default=True)
@click.option("-f", "--filename", default="", help="A YAML file with one Job, instead of the other flags.")
@api_options
def run(
    image: str,
    namespace: str,
    name: str,
    minimum: int,
    replicas: int,
    requests: str,
    limits: str,
    scheduler: str,
    filename: str,
    kubeconfig: str,
    master: str,
) -> None:
    """Run a job from flags or from a file."""
    what = "run job"
    if not name and not filename:
        give_up(what, "job name cannot be left blank")
    try:
        if filename:
            manifest = _from_file(filename)
            manifest.setdefault("metadata", {})["namespace"] = namespace
        else:
            manifest = job_manifest(
                name, namespace, image, minimum, replicas, resources(requests), resources(limits), scheduler
            )
    except OSError as e:
        give_up(what, in_words(e))
    except ValueError as e:
        give_up(what, str(e))

    async def work(client: Client) -> None:
        created = await client.create(JOB, manifest, namespace)
        click.echo(f"run job {created['metadata'].get('name', '')} successfully")

    call(what, kubeconfig, master, work)


def _from_file(path: str) -> Manifest:
    if ".yaml" not in path and ".yml" not in path:
        raise ValueError(f"only support yaml file, found {path}")
    try:
        document = yaml.safe_load(Path(path).read_text())
    except yaml.YAMLError as e:
        raise ValueError(f"{path}: not valid YAML: {' '.join(str(e).split())}") from None
    if not isinstance(document, dict) or document.get("kind") != "Job":
        raise ValueError(f"{path}: must hold one Job (batch.volcano.sh/v1alpha1)")
    return document


def resources(text: str) -> dict[str, str]:
    """`cpu=1,memory=1Gi` as a resource list. Raises ValueError."""
    found = {}
    for part in filter(None, (p.strip() for p in text.split(","))):
        key, equals, value = part.partition("=")
        if not equals or not key or not value:
            raise ValueError(f"resource {part!r} must be name=quantity, such as cpu=1000m")
        found[key] = value
    return found


def job_manifest(
    name: str,
    namespace: str,
    image: str,
    minimum: int,
    replicas: int,
    requests: dict[str, str],
    limits: dict[str, str],
    scheduler: str,
    command: list[str] | None = None,
) -> Manifest:
    """A job of one task."""
    container: Manifest = {
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "resources": {"requests": requests, "limits": limits},
    }
    if command:
        container["command"] = command
    return {
        "apiVersion": JOB.api_version,
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "minAvailable": minimum,
            "schedulerName": scheduler,
            "tasks": [
                {
                    "replicas": replicas,
                    "template": {
                        "metadata": {"name": name, "labels": {names.CLI_JOB_LABEL: name}},
                        "spec": {"restartPolicy": "Never", "containers": [container]},
                    },
                }
            ],
        },
    }


@job.command("list")
@click.option("-q", "--queue", default="", help="Only jobs of this queue.")
@click.option("-n", "--namespace", default="default", show_default=True)
@click.option("-S", "--scheduler", default="", help="Only jobs of this scheduler.")
@click.option("--all-namespaces", is_flag=True)
@click.option("--selector", default="", help="Only jobs whose name contains this.")
@api_options
def list_(
    queue: str, namespace: str, scheduler: str, all_namespaces: bool, selector: str, kubeconfig: str, master: str
) -> None:
    """List jobs."""

    async def work(client: Client) -> None:
        found = await client.list(JOB, None if all_namespaces else namespace)
        jobs = [
            j
            for j in found
            if (not scheduler or j.get("spec", {}).get("schedulerName") == scheduler)
            and (not queue or j.get("spec", {}).get("queue") == queue)
            and selector in j["metadata"]["name"]
        ]
        print_jobs(jobs, all_namespaces)

    call("list job", kubeconfig, master, work)


def print_jobs(jobs: list[Manifest], namespaces: bool) -> None:
    """The table of jobs."""
    if not jobs:
        click.echo("No resources found")
        return
    widths = [widest("Name", [j["metadata"]["name"] for j in jobs], 3), *_WIDTHS]
    header: tuple[str, ...] = _HEADER
    if namespaces:
        widths = [widest("Namespace", [j["metadata"]["namespace"] for j in jobs], 3), *widths]
        header = ("Namespace", *header)
    click.echo(line(header, widths))
    for j in jobs:
        row = job_row(j)
        click.echo(line([j["metadata"]["namespace"], *row] if namespaces else row, widths))


def job_row(j: Manifest) -> list[object]:
    metadata, spec, status = j["metadata"], j.get("spec", {}), j.get("status") or {}
    return [
        metadata["name"],
        (metadata.get("creationTimestamp") or "0001-01-01")[:10],
        (status.get("state") or {}).get("phase", ""),
        (metadata.get("labels") or {}).get(names.JOB_TYPE) or "Batch",
        sum(t.get("replicas", 0) for t in spec.get("tasks") or ()),
        *(
            status.get(k, 0)
            for k in ("minAvailable", "pending", "running", "succeeded", "failed", "unknown", "retryCount")
        ),
    ]


def _named(command: Any) -> Any:
    """-n/--namespace, and -N/--name that must be given."""
    command = click.option("-N", "--name", required=True, help="Name of the job.")(command)
    return click.option("-n", "--namespace", default="default", show_default=True)(command)


@job.command()
@_named
@api_options
def delete(namespace: str, name: str, kubeconfig: str, master: str) -> None:
    """Delete a job."""

    async def work(client: Client) -> None:
        await client.delete(JOB, name, namespace)
        click.echo(f"delete job {name} successfully")

    call("delete job", kubeconfig, master, work)


@job.command()
@_named
@api_options
def suspend(namespace: str, name: str, kubeconfig: str, master: str) -> None:
    """Abort a job; it can be resumed."""
    call("suspend job", kubeconfig, master, lambda client: send_command(client, namespace, name, "AbortJob"))


@job.command()
@_named
@api_options
def resume(namespace: str, name: str, kubeconfig: str, master: str) -> None:
    """Resume an aborted job."""
    call("resume job", kubeconfig, master, lambda client: send_command(client, namespace, name, "ResumeJob"))


async def send_command(client: Client, namespace: str, name: str, action: str) -> None:
    """Create the Command that asks for an action on a job."""
    found = (await client.get(JOB, name, namespace))["metadata"]
    reference = {
        "apiVersion": JOB.api_version,
        "kind": "Job",
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


@job.command()
@_named
@api_options
def view(namespace: str, name: str, kubeconfig: str, master: str) -> None:
    """Describe a job and list its events."""

    async def work(client: Client) -> None:
        found = await client.get(JOB, name, namespace)
        events = await client.list(EVENT, namespace)
        mine = f"{found['metadata'].get('name', '')}."
        shown = [e for e in events if e["metadata"]["name"].startswith(mine)]
        click.echo("\n".join((*job_view.describe(found), *job_view.events(shown))))

    call("view job", kubeconfig, master, work)
