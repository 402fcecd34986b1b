"""`vqueues`: list queues, or one. Volcano: vqueues; the counts are those of `cli.queue_table`."""

from __future__ import annotations

import click

from volcano_py.cli import queue_table
from volcano_py.cli.connection import api_options, call
from volcano_py.cli.errors import Tool
from volcano_py.cli.listing import show, watch_option
from volcano_py.cli.output import output_option
from volcano_py.cli.selection import label_option
from volcano_py.cli.vcctl_queue import print_one


@click.command(cls=Tool)
@click.option("-n", "--name", default="", help="Name of the queue to show (default: all).")
@label_option
@output_option()
@watch_option()
@api_options
def main(name: str, label_selector: str, output: str | None, watch: bool, kubeconfig: str, master: str) -> None:
    """List queues, or one."""
    if name and not watch:
        call("", kubeconfig, master, lambda client: print_one(client, name, queue_table.SHORT, output))
        return
    listing = queue_table.listing(queue_table.SHORT, label_selector, name)
    call("", kubeconfig, master, lambda client: show(client, listing, output, watch))


if __name__ == "__main__":
    main(prog_name="vqueues")
