"""`vjobs`: list jobs, or describe one. Volcano: vjobs; here -n is the name and -N the namespace."""

from __future__ import annotations

import click

from volcano_py.cli import job_table
from volcano_py.cli.connection import api_options, call
from volcano_py.cli.errors import Tool
from volcano_py.cli.listing import show, watch_option
from volcano_py.cli.output import as_table, output_option
from volcano_py.cli.selection import selector_option
from volcano_py.cli.vcctl_job import view_job


@click.command(cls=Tool)
@click.option("-n", "--name", default="", help="Name of the job to describe (default: list all jobs).")
@click.option("-N", "--namespace", default="default", show_default=True, help="Namespace of the job.")
@click.option("-S", "--scheduler", default="", help="Select jobs of this scheduler.")
@click.option("-A", "--all-namespaces", is_flag=True, help="List the objects of all namespaces.")
@selector_option
@output_option()
@watch_option()
@api_options
def main(
    name: str,
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
    """List jobs, or describe one."""
    if name:
        form = None if as_table(output) else output
        call("", kubeconfig, master, lambda client: view_job(client, namespace, name, conditions=False, output=form))
        return
    listing = job_table.listing(
        None if all_namespaces else namespace,
        selector,
        label_selector,
        lambda j: not scheduler or j.get("spec", {}).get("schedulerName") == scheduler,
    )
    # As in Volcano, filters do not change the header and the width of its columns.
    listing = listing._replace(hides=True)
    call("", kubeconfig, master, lambda client: show(client, listing, output, watch))


if __name__ == "__main__":
    main(prog_name="vjobs")
