"""`vcctl queue`. Volcano: vcctl queue create|get|list|operate|delete; `tree`, --wait and --watch are additions."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING

import click

from volcano_py.api.kinds import NODE, PODGROUP, QUEUE
from volcano_py.api.scheduling import ROOT_QUEUE
from volcano_py.cli import dry_run as dry_runs
from volcano_py.cli import queue_table, queue_tree
from volcano_py.cli.bars import has_blocks
from volcano_py.cli.connection import api_options, call, exit_failed
from volcano_py.cli.dry_run import dry_run_option
from volcano_py.cli.follow import Followed, Source
from volcano_py.cli.job_commands import send
from volcano_py.cli.listing import show, watch_option
from volcano_py.cli.output import as_table, output_option, print_object, text_of
from volcano_py.cli.queue_shares import without_reclaim
from volcano_py.cli.queue_tree_table import legend, tree_table
from volcano_py.cli.selection import label_option
from volcano_py.cli.waiting import State, wait_option
from volcano_py.cli.waiting import wait as wait_for
from volcano_py.cli.wrapping import columns_of, wrapped
from volcano_py.kube.errors import Forbidden

if TYPE_CHECKING:
    from volcano_py.kube.client import Client

_BAR = 20
"""Characters of a bar in the tree."""


@click.group()
def queue() -> None:
    """Create, get, list, operate and delete queues; show their tree."""


@queue.command()
@click.option("-n", "--name", default="test", show_default=True, help="Name of the queue.")
@click.option("-w", "--weight", type=int, default=1, show_default=True, help="Weight of the queue.")
@click.option("-S", "--state", default="Open", show_default=True, help="State of the queue: Open or Closed.")
@output_option("json", "yaml", "name")
@dry_run_option
@wait_option("Wait until the queue is Open.")
@api_options
def create(
    name: str,
    weight: int,
    state: str,
    output: str | None,
    dry_run: str | None,
    wait: bool,
    timeout: float,
    kubeconfig: str,
    master: str,
) -> None:
    """Create a queue."""
    manifest = {
        "apiVersion": QUEUE.api_version,
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"weight": weight},
        "status": {"state": state},
    }
    if dry_run == "client":
        dry_runs.run_on_client("create queue", kubeconfig, master, QUEUE, [manifest], output)
        return

    async def work(client: Client) -> None:
        if dry_run:
            await dry_runs.run_on_server(client, QUEUE, [manifest], None, output)
            return
        created = await client.create(QUEUE, manifest)
        if output is not None:
            print_object(QUEUE, created, output)
        if wait:
            await _until(client, name, "Open", timeout)

    call("create queue", kubeconfig, master, work)


@queue.command()
@click.option("-n", "--name", default="", help="Name of the queue.")
@wait_option("Wait until the queue is deleted.")
@api_options
def delete(name: str, wait: bool, timeout: float, kubeconfig: str, master: str) -> None:
    """Delete a queue."""
    if not name:
        exit_failed("delete queue", "queue name must be specified")

    async def work(client: Client) -> None:
        await client.delete(QUEUE, name)
        if wait:
            await _until(client, name, "", timeout)

    call("delete queue", kubeconfig, master, work)


@queue.command()
@click.option("-n", "--name", default="", help="Name of the queue.")
@output_option()
@api_options
def get(name: str, output: str | None, kubeconfig: str, master: str) -> None:
    """Show one queue."""
    if not name:
        exit_failed("get queue", "name is mandatory to get the particular queue details")
    call("get queue", kubeconfig, master, lambda client: print_one(client, name, queue_table.HEADER, output))


async def print_one(client: Client, name: str, columns: tuple[str, ...], output: str | None) -> None:
    """Print one queue as a table with one row, or as an object."""
    found = await client.get(QUEUE, name)
    if not as_table(output):
        print_object(QUEUE, found, output or "")
        return
    counts = queue_table.count(await client.list(PODGROUP), [found])
    queue_table.queue_table([found], counts, columns, output == "wide").show()


@queue.command("list")
@label_option
@output_option()
@watch_option(letter=False)
@api_options
def list_(label_selector: str, output: str | None, watch: bool, kubeconfig: str, master: str) -> None:
    """List all queues."""
    listing = queue_table.listing(queue_table.HEADER, label_selector)
    call("list queue", kubeconfig, master, lambda client: show(client, listing, output, watch))


@queue.command()
@click.option("-n", "--name", default="root", show_default=True, help="Root of the tree to show.")
@click.option("-r", "--resource", default="cpu", show_default=True, help="Comma-separated list of resources.")
@output_option("json", "yaml")
@api_options
def tree(name: str, resource: str, output: str | None, kubeconfig: str, master: str) -> None:
    """Show the hierarchy of queues, with bars of their amounts."""
    resources = tuple(filter(None, (part.strip() for part in resource.split(","))))
    if not resources:
        exit_failed("tree queue", "no resource specified; use -r, such as -r cpu,memory")
    call("tree queue", kubeconfig, master, lambda client: _show_tree(client, name, resources, output))


async def _show_tree(client: Client, name: str, resources: tuple[str, ...], output: str | None) -> None:
    queues, groups = list(await client.list(QUEUE)), list(await client.list(PODGROUP))
    total: queue_tree.Amounts = {}
    # For users that may not list nodes, the longest bar is the scale.
    with contextlib.suppress(Forbidden):
        for node in await client.list(NODE):
            queue_tree.add(total, queue_tree.amounts((node.get("status") or {}).get("allocatable")))
    trees = queue_tree.grow(queues, groups, total, queue_table.count(groups, queues))
    known = queue_tree.resources(trees) | total.keys()
    for resource in resources:
        if known and resource not in known:
            raise ValueError(queue_tree.unknown(resource, known))
    if name != ROOT_QUEUE:
        found = queue_tree.find(trees, name)
        if found is None:
            raise ValueError(f"queue {name!r} does not exist; see `vcctl queue list`")
        trees = [found]
    if output is not None:
        objects = [queue_tree.as_object(b) for b in trees]
        click.echo(text_of({"queues": objects}, output, sort=False), nl=False)
        return
    blocks = has_blocks(sys.stdout)
    columns = columns_of(sys.stdout)
    bar = _BAR if columns is None else max(_BAR // 2, min(_BAR, columns // 8))
    tree_table(trees, resources, total, bar, blocks).show()
    click.echo(f"\n{wrapped(legend(blocks), sys.stdout)}")
    note = await without_reclaim(client, trees)
    if note:
        click.echo(f"\n{wrapped(note, sys.stdout)}")


@queue.command()
@click.option("-n", "--name", default="", help="Name of the queue.")
@click.option("-a", "--action", default="", help="Action: open, close or update.")
@click.option("-w", "--weight", type=int, default=0, help="New weight, for update.")
@wait_option("Wait until the queue has the state of the action.")
@api_options
def operate(name: str, action: str, weight: int, wait: bool, timeout: float, kubeconfig: str, master: str) -> None:
    """Open or close a queue, or change its weight."""
    what = "operate queue"
    if not name:
        exit_failed(what, "queue name must be specified")
    if not action:
        exit_failed(what, "action can not be null")
    if action not in ("open", "close", "update"):
        exit_failed(what, f"action {action} invalid, valid actions are open, close and update")
    if action == "update" and weight == 0:
        exit_failed(what, f"when update queue {name}, weight must be specified, the value must be greater than 0")

    async def work(client: Client) -> None:
        if action == "update":
            await client.patch(QUEUE, name, {"spec": {"weight": weight}})
            return
        found = await client.get(QUEUE, name)
        await send(client, QUEUE, found, "OpenQueue" if action == "open" else "CloseQueue", "default")
        if wait:
            await _until(client, name, "Open" if action == "open" else "Closed", timeout)

    call(what, kubeconfig, master, work)


async def _until(client: Client, name: str, state: str, timeout: float) -> None:
    """Wait until a queue has a state; empty: until it is deleted."""

    def state_of(followed: Followed) -> State:
        found = followed.objects()
        if not found:
            return State("gone", reached=True) if not state else State("gone", failed="was deleted")
        now = str((found[0].get("status") or {}).get("state") or "without a state")
        groups = followed.objects(1) if state == "Closed" else []
        left = sum(1 for group in groups if group.get("spec", {}).get("queue") == name)
        text = f"{now}, {left} PodGroups left" if now == "Closing" else now
        return State(text, reached=bool(state) and now == state)

    sources = [Source.one(QUEUE, name), *([Source(PODGROUP)] if state == "Closed" else [])]
    await wait_for(client, f"queue {name}", sources, state_of, timeout)
