"""`vcctl top`: queues, jobs and nodes, updated live in the terminal. Not in Volcano."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from volcano_py.api.kinds import NAMESPACE
from volcano_py.cli import terminal
from volcano_py.cli.connection import api_options, call
from volcano_py.cli.follow import Followed, Source, following
from volcano_py.kube.errors import ApiError, NotFound

if TYPE_CHECKING:
    from volcano_py.kube.client import Client

_SECTIONS = ("queues", "jobs", "nodes")


@click.command()
@click.argument("section", type=click.Choice(_SECTIONS), required=False)
@click.option("-n", "--namespace", default="", help="Select jobs of this namespace.")
@click.option(
    "-r", "--resource", default="", help="Comma-separated list of resources (default: all resources of the nodes)."
)
@click.option("--once", is_flag=True, help="Print once, with all rows, and exit.")
@click.option(
    "--interval", type=click.FloatRange(0.2), default=1.0, show_default=True, help="Seconds between two updates."
)
@api_options
def top(
    section: str | None, namespace: str, resource: str, once: bool, interval: float, kubeconfig: str, master: str
) -> None:
    """Watch queues, jobs and nodes, or one of them, until Ctrl-C.

    The command watches the cluster with your permissions; kinds that you may not list are left out and reported. If the
    output is not a terminal, it prints plain tables once.
    """
    sections = (section,) if section else _SECTIONS
    chosen = [part.strip() for part in resource.split(",") if part.strip()]

    async def work(client: Client) -> None:
        from volcano_py.cli.top_facts import sources

        if namespace:
            await _check_namespace(client, namespace)
        given = sources(sections, namespace, client.namespace)
        async with following(client, *given) as followed:
            if not sys.stdout.isatty():
                _print_plain(followed, given, sections, namespace, chosen)
            elif once:
                _print_once(followed, given, sections, namespace, chosen)
            else:
                await _draw(followed, given, sections, namespace, chosen, interval)

    with contextlib.suppress(KeyboardInterrupt):
        call("top", kubeconfig, master, work)


async def _check_namespace(client: Client, name: str) -> None:
    """Raises ValueError if a namespace does not exist; a user who may not read it is not hindered."""
    try:
        await client.get(NAMESPACE, name)
    except NotFound:
        raise ValueError(f"namespace {name!r} does not exist; see `kubectl get namespaces`") from None
    except ApiError:
        return


def _print_plain(
    followed: Followed, given: list[Source], sections: Sequence[str], namespace: str, chosen: list[str]
) -> None:
    from volcano_py.cli.top_facts import facts
    from volcano_py.cli.top_view import check_resources, plain

    for note in followed.notes:
        click.echo(f"note: {note}", err=True)
    found = facts(followed, given, sections, namespace)
    check_resources(found, chosen)
    for number, table in enumerate(plain(found, sections, chosen)):
        if number:
            click.echo()
        table.show()


def _print_once(
    followed: Followed, given: list[Source], sections: Sequence[str], namespace: str, chosen: list[str]
) -> None:

    from volcano_py.cli.bars import has_blocks
    from volcano_py.cli.top_facts import facts
    from volcano_py.cli.top_view import check_resources, view

    console = terminal.console(highlight=False)
    found = facts(followed, given, sections, namespace)
    check_resources(found, chosen)
    console.print(view(found, sections, chosen, console.width, None, has_blocks(sys.stdout)))


async def _draw(
    followed: Followed,
    given: list[Source],
    sections: Sequence[str],
    namespace: str,
    chosen: list[str],
    interval: float,
) -> None:
    """Redraw until cancelled."""
    from rich.live import Live

    from volcano_py.cli.bars import has_blocks
    from volcano_py.cli.top_facts import facts
    from volcano_py.cli.top_view import check_resources, view

    # Informers log their retries; the head line shows that the data may be stale.
    logging.getLogger("volcano_py.kube").setLevel(logging.CRITICAL)
    console, blocks = terminal.console(highlight=False), has_blocks(sys.stdout)
    connected = time.monotonic()
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            now = time.monotonic()
            connected = now if followed.connected else connected
            silent = now - connected
            head = time.strftime("%H:%M:%S  Ctrl-C ends")
            if silent > 2 * interval + 1:
                head += f"  not connected for {silent:.0f} s; the data is stale"
            found = facts(followed, given, sections, namespace)
            check_resources(found, chosen)
            live.update(view(found, sections, chosen, console.width, console.height, blocks, head), refresh=True)
            await _passed(followed, interval)


async def _passed(followed: Followed, seconds: float) -> None:
    """Consume changes for some seconds; the stores already contain them."""
    end = asyncio.get_running_loop().time() + seconds
    while (left := end - asyncio.get_running_loop().time()) > 0:
        await followed.next(left)
