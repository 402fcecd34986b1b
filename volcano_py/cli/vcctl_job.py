"""`vcctl job`. Volcano: vcctl job run|list|view|suspend|resume|delete."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click
import yaml

from volcano_py.api import names
from volcano_py.api.kinds import COMMAND, EVENT, JOB
from volcano_py.api.meta import parse_time
from volcano_py.cli.columns import human_duration, line, widest
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
        click.echo(f"run job {created['metadata']['name']} successfully")

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

    call("list jobs", kubeconfig, master, work)


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
    found = await client.get(JOB, name, namespace)
    reference = {
        "apiVersion": JOB.api_version,
        "kind": "Job",
        "name": found["metadata"]["name"],
        "uid": found["metadata"].get("uid", ""),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    command = {
        "apiVersion": COMMAND.api_version,
        "kind": "Command",
        "metadata": {
            "generateName": f"{name}-{action.lower()}-",
            "namespace": namespace,
            "ownerReferences": [reference],
        },
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
        mine = [e for e in events if e["metadata"]["name"].startswith(f"{name}.")]
        click.echo("\n".join(describe(found)))
        _print_events(mine)

    call("view job", kubeconfig, master, work)


def describe(j: Manifest) -> list[str]:
    """A job as text, line by line."""
    metadata, spec, status = j["metadata"], j.get("spec") or {}, j.get("status") or {}
    plugins = spec.get("plugins") or {}
    out = [f"Name:       \t{metadata['name']}", f"Namespace:  \t{metadata.get('namespace', '')}"]
    out += _map_lines("Labels:     ", metadata.get("labels")) + _map_lines("Annotations:", metadata.get("annotations"))
    out += ["API Version:\t" + j.get("apiVersion", JOB.api_version), "Kind:       \tJob", "Metadata:"]
    out += [
        f"  Creation Timestamp:\t{metadata.get('creationTimestamp', '')}",
        f"  Generate Name:     \t{metadata.get('generateName', '')}",
        f"  Generation:        \t{metadata.get('generation', 0)}",
        f"  Resource Version:  \t{metadata.get('resourceVersion', '')}",
        f"  UID:               \t{metadata.get('uid', '')}",
        "Spec:",
        f"  Min Available:     \t{spec.get('minAvailable', 0)}",
        "  Plugins:",
    ]
    out += [f"    {plugin.capitalize()}:\t{plugins.get(plugin)}" for plugin in ("env", "ssh") if plugin in plugins]
    out += [f"  Scheduler Name:    \t{spec.get('schedulerName', '')}", "  Tasks:"]
    for task in spec.get("tasks") or ():
        out += _task_lines(task)
    out.append("Status:")
    for key in ("succeeded", "pending", "running", "failed", "minAvailable", "retryCount", "version"):
        if status.get(key):
            label = "".join(f" {c}" if c.isupper() else c for c in key).title()
            out.append(f"  {label + ':':<19}\t{status[key]}")
    state = status.get("state") or {}
    out += ["  State:", f"    Phase:\t{state.get('phase', '')}"]
    if state.get("message"):
        out.append(f"    Message:\t{state['message']}")
    out += _map_lines("  Controlled Resources:", status.get("controlledResources"))
    if status.get("conditions"):
        out.append("  Conditions:")
        for c in status["conditions"]:
            out += [
                f"    Status:          \t{c.get('status')}",
                f"    Transition Time: \t{c.get('lastTransitionTime')}",
            ]
    return out


def _map_lines(label: str, values: dict[str, str] | None) -> list[str]:
    if not values:
        return [f"{label}\t<none>"]
    pad = " " * len(label)
    return [f"{label if i == 0 else pad}\t{k}={v}" for i, (k, v) in enumerate(sorted(values.items()))]


def _task_lines(task: Manifest) -> list[str]:
    template = task.get("template") or {}
    pod = template.get("spec") or {}
    out = [f"    Name:\t{task.get('name', '')}", f"    Replicas:\t{task.get('replicas', 0)}", "    Template:"]
    if (template.get("metadata") or {}).get("name"):
        out.append(f"      Metadata Name:\t{template['metadata']['name']}")
    for c in pod.get("containers") or ():
        out.append("      Container:")
        if c.get("command"):
            out.append("        Command:\t" + " ".join(c["command"]))
        out += [f"        Image:\t{c.get('image', '')}", f"        Name: \t{c.get('name', '')}"]
        if c.get("ports"):
            out.append("        Ports:")
            out += [f"          {p.get('name', '-')}:\t{p.get('containerPort')}" for p in c["ports"]]
        for kind in ("limits", "requests"):
            amounts = (c.get("resources") or {}).get(kind)
            if amounts:
                out.append(f"        {kind.capitalize()}:")
                out += [f"          {k}:\t{v}" for k, v in sorted(amounts.items())]
        if c.get("workingDir"):
            out.append(f"        Working Dir:\t{c['workingDir']}")
    if pod.get("imagePullSecrets"):
        out.append("      Image Pull Secrets:")
        out += [f"        Name:\t{s.get('name')}" for s in pod["imagePullSecrets"]]
    out.append(f"      Restart Policy:\t{pod.get('restartPolicy', '')}")
    return out


def _print_events(events: list[Manifest]) -> None:
    if not events:
        click.echo("Events:\t<none>")
        return
    click.echo("Events:")
    rows = [("Type", "Reason", "Age", "From", "Message")]
    for e in events:
        stamp = e.get("lastTimestamp") or e.get("eventTime") or e["metadata"].get("creationTimestamp")
        age = human_duration(time.time() - parse_time(stamp)) if stamp else "<unknown>"
        source = (e.get("source") or {}).get("component") or e.get("reportingComponent", "")
        rows.append((e.get("type", ""), e.get("reason", ""), age, source, e.get("message", "")))
    widths = [max(len(r[i]) for r in rows) + 2 for i in range(4)] + [0]
    for row in rows:
        click.echo("  " + line(row, widths))
