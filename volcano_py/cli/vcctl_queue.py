"""`vcctl queue`. Volcano: vcctl queue create|get|list|operate|delete."""

from __future__ import annotations

from typing import Any

import click

from volcano_py.api.kinds import COMMAND, PODGROUP, QUEUE
from volcano_py.cli.columns import line
from volcano_py.cli.connection import api_options, call, give_up
from volcano_py.kube.client import Client

Manifest = dict[str, Any]
_HEADER = ("Name", "Weight", "State", "Parent", "Inqueue", "Pending", "Running", "Unknown", "Completed")
_WIDTHS = (25, *(8,) * 8)
_PHASES = ("Inqueue", "Pending", "Running", "Unknown", "Completed")


@click.group()
def queue() -> None:
    """Create, get, list, operate and delete queues."""


@queue.command()
@click.option("-n", "--name", default="test", show_default=True)
@click.option("-w", "--weight", type=int, default=1, show_default=True)
@click.option("-S", "--state", default="Open", show_default=True)
@api_options
def create(name: str, weight: int, state: str, kubeconfig: str, master: str) -> None:
    """Create a queue."""

    async def work(client: Client) -> None:
        manifest = {
            "apiVersion": QUEUE.api_version,
            "kind": "Queue",
            "metadata": {"name": name},
            "spec": {"weight": weight},
            "status": {"state": state},
        }
        await client.create(QUEUE, manifest)

    call("create queue", kubeconfig, master, work)


@queue.command()
@click.option("-n", "--name", default="")
@api_options
def delete(name: str, kubeconfig: str, master: str) -> None:
    """Delete a queue."""
    if not name:
        give_up("delete queue", "queue name must be specified")

    async def work(client: Client) -> None:
        await client.delete(QUEUE, name)

    call("delete queue", kubeconfig, master, work)


@queue.command()
@click.option("-n", "--name", default="")
@api_options
def get(name: str, kubeconfig: str, master: str) -> None:
    """Show one queue."""
    if not name:
        give_up("get queue", "name is mandatory to get the particular queue details")

    async def work(client: Client) -> None:
        await _print(client, [await client.get(QUEUE, name)])

    call("get queue", kubeconfig, master, work)


@queue.command("list")
@api_options
def list_(kubeconfig: str, master: str) -> None:
    """List all queues."""

    async def work(client: Client) -> None:
        found = await client.list(QUEUE)
        if not found:
            click.echo("No resources found")
            return
        await _print(client, found)

    call("list queue", kubeconfig, master, work)


async def _print(client: Client, queues: list[Manifest]) -> None:
    counts: dict[str, dict[str, int]] = {}
    for group in await client.list(PODGROUP):
        of_queue = counts.setdefault(group.get("spec", {}).get("queue", ""), {})
        phase = (group.get("status") or {}).get("phase", "")
        of_queue[phase] = of_queue.get(phase, 0) + 1
    print_queues(queues, counts)


def print_queues(queues: list[Manifest], counts: dict[str, dict[str, int]]) -> None:
    """The table of queues; `counts`: PodGroups by queue and phase."""
    click.echo(line(_HEADER, _WIDTHS))
    for q in queues:
        name, spec = q["metadata"]["name"], q.get("spec") or {}
        numbers = counts.get(name, {})
        state = (q.get("status") or {}).get("state", "")
        row = [name, spec.get("weight", 0), state, spec.get("parent", ""), *(numbers.get(p, 0) for p in _PHASES)]
        click.echo(line(row, _WIDTHS))


@queue.command()
@click.option("-n", "--name", default="")
@click.option("-a", "--action", default="", help="open, close or update")
@click.option("-w", "--weight", type=int, default=0, help="The new weight, for update.")
@api_options
def operate(name: str, action: str, weight: int, kubeconfig: str, master: str) -> None:
    """Open or close a queue, or change its weight."""
    what = "operate queue"
    if not name:
        give_up(what, "queue name must be specified")
    if not action:
        give_up(what, "action can not be null")
    if action not in ("open", "close", "update"):
        give_up(what, f"action {action} invalid, valid actions are open, close and update")
    if action == "update" and weight == 0:
        give_up(what, f"when update queue {name}, weight must be specified, the value must be greater than 0")

    async def work(client: Client) -> None:
        if action == "update":
            await client.patch(QUEUE, name, {"spec": {"weight": weight}})
            return
        await _send(client, name, "OpenQueue" if action == "open" else "CloseQueue")

    call(what, kubeconfig, master, work)


async def _send(client: Client, name: str, action: str) -> None:
    found = (await client.get(QUEUE, name))["metadata"]
    reference = {
        "apiVersion": QUEUE.api_version,
        "kind": "Queue",
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
    await client.create(COMMAND, command, "default")
