"""`--dry-run`: the objects that would be created, and the problems that admission would report.

With `client` the rules of volcano_py.webhooks apply, with the queues of the cluster if it can be reached;
`--dry-run=server` sends the object with dryRun=All, and the server validates it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from volcano_py.api.kinds import JOB, QUEUE, ResourceType
from volcano_py.cli.connection import FAILED
from volcano_py.cli.output import print_object, print_objects, text_of, whole
from volcano_py.kube.errors import KubeError

if TYPE_CHECKING:
    from volcano_py.kube.client import Client

Manifest = dict[str, Any]
_NEEDS_QUEUES = (JOB, QUEUE)

dry_run_option: Callable[..., Any] = click.option(
    "--dry-run",
    is_flag=False,
    flag_value="client",
    type=click.Choice(["client", "server"]),
    metavar="[=server]",
    help="Print the object and its problems, without creating it.",
)


async def run_on_server(
    client: Client, rt: ResourceType, objects: Iterable[Manifest], namespace: str | None, output: str | None
) -> None:
    """Send objects with dryRun=All, and print the objects that the server would store. Raises ApiError."""
    from volcano_py.kube import wire

    answers = []
    for obj in objects:
        where = (namespace or obj["metadata"].get("namespace")) if rt.namespaced else None
        body = await client.raw("POST", rt.path(where), params={"dryRun": "All"}, body=wire.encode(rt, obj))
        answers.append(wire.decode(body, None))
    _print(rt, answers, output)


def run_on_client(
    what: str, kubeconfig: str, master: str, rt: ResourceType, objects: Sequence[Manifest], output: str | None
) -> None:
    """Print objects after mutation, and their problems on standard error.

    Exits with 255 if there are problems. Without a cluster, checks that need its queues are skipped, with a note.
    """
    queues = asyncio.run(_queues(kubeconfig, master)) if rt in _NEEDS_QUEUES else []
    if isinstance(queues, str):
        click.echo(f"note: checks that need the cluster's queues are skipped: {queues}", err=True)
    made, problems = [], []
    for obj in objects:
        changed, found = admitted(rt, obj, None if isinstance(queues, str) else queues)
        made.append(changed)
        problems += found
    _print(rt, made, output)
    for problem in problems:
        click.echo(f"Failed to {what}: {problem}" if what else f"Failed to: {problem}", err=True)
    if problems:
        raise SystemExit(FAILED)


async def _queues(kubeconfig: str, master: str) -> list[Manifest] | str:
    """The queues of the cluster, or why they cannot be listed."""
    from volcano_py.kube.client import Client

    try:
        async with Client.for_flags(kubeconfig or None, master or None) as client:
            return list(await client.list(QUEUE))
    except (KubeError, OSError, ValueError) as e:
        return str(e)


def admitted(rt: ResourceType, obj: Manifest, queues: list[Manifest] | None) -> tuple[Manifest, list[str]]:
    """An object after mutation, and its problems. `queues` None: unknown, every queue counts as open."""
    from volcano_py.webhooks.lookup import QueueIndex
    from volcano_py.webhooks.paths import CREATE, PATHS, AdmissionContext, AdmissionRequest, evaluate

    namespace = obj["metadata"].get("namespace", "")
    if queues is None:
        around = AdmissionContext(QueueIndex([_open((obj.get("spec") or {}).get("queue") or "default")]))
    else:
        around = AdmissionContext(QueueIndex(queues))
    problems: list[str] = []
    paths = [path for path in PATHS.values() if path.rt == rt and CREATE in path.operations]
    for path in sorted(paths, key=lambda path: not path.mutates):
        if rt == QUEUE and queues is None and not path.mutates:
            continue
        verdict = evaluate(
            path, AdmissionRequest(CREATE, obj, name=obj["metadata"].get("name", ""), namespace=namespace), around
        )
        problems += verdict.problems
        obj = verdict.obj if verdict.obj is not None else obj
    return obj, problems


def _open(name: str) -> Manifest:
    return {"metadata": {"name": name}, "spec": {}, "status": {"state": "Open"}}


def _print(rt: ResourceType, objects: Sequence[Manifest], output: str | None) -> None:
    if output not in (None, "yaml"):
        if len(objects) == 1:
            print_object(rt, objects[0], output)
        else:
            print_objects(rt, objects, output)
        return
    click.echo("---\n".join(text_of(whole(rt, obj), "yaml") for obj in objects), nl=False)
