"""`vcctl fairshare`: usage, share and order of queues and owners. Not in Volcano; Slurm's `sshare` is the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from volcano_py.api.kinds import QUEUE
from volcano_py.api.meta import format_time
from volcano_py.cli.columns import Table, widest
from volcano_py.cli.connection import api_options, call, exit_failed
from volcano_py.cli.fairshare_order import Line, lines
from volcano_py.cli.output import output_option, text_of
from volcano_py.cli.stored_usage import STORED_IN, stored_usage

if TYPE_CHECKING:
    from volcano_py.kube.client import Client

_HEADER = ("Queue", "Owner", "Order", "Weight", "Share", "Usage", "UsedShare", "Held")
_HOUR = 3600.0


@click.command()
@click.option("-q", "--queue", default="", help="Only this queue and its owners.")
@click.option(
    "--history",
    default=STORED_IN,
    show_default=True,
    help="NAMESPACE/NAME of the ConfigMap in which the scheduler stores the usage.",
)
@output_option("json", "yaml")
@api_options
def fairshare(queue: str, history: str, output: str | None, kubeconfig: str, master: str) -> None:
    """Show what queues and owners have used, their shares, and who comes first."""
    namespace, _, name = history.partition("/")
    if not name:
        exit_failed("show fairshare", f"--history is {history!r}, and must be NAMESPACE/NAME")

    async def work(client: Client) -> None:
        document = await stored_usage(client, namespace, name)
        found = lines(document, list(await client.list(QUEUE)))
        if queue:
            found = [line for line in found if line.queue == queue]
            if not found:
                raise ValueError(f"queue {queue!r} does not exist; see `vcctl queue list`")
        if output is not None:
            what = {"at": format_time(document.at), "lines": [msgspec.to_builtins(line) for line in found]}
            click.echo(text_of(what, output, sort=False), nl=False)
            return
        table(found).show()
        click.echo(
            f"Usage at {format_time(document.at)}, in hours of the whole cluster; it halves every "
            f"{document.half_life / _HOUR:g} h."
        )

    call("show fairshare", kubeconfig, master, work)


def table(found: list[Line]) -> Table:
    """The lines as a table; queues are indented below their parents, and owners below their queues."""
    rows: list[list[object]] = [
        [
            "" if line.owner else "  " * line.depth + line.queue,
            line.owner or "*",
            line.order,
            f"{line.weight:g}",
            f"{line.share:.0%}",
            f"{line.used / _HOUR:.2f}",
            f"{line.of_siblings:.0%}",
            f"{line.held:.1%}",
        ]
        for line in found
    ]
    widths = [widest(name, [str(row[i]) for row in rows], 3) for i, name in enumerate(_HEADER)]
    return Table(_HEADER, rows, widths, ("Held", "Weight"))
