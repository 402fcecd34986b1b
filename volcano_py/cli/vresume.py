"""`vresume` resumes an aborted job. Volcano: vresume; here -n is the name and -N the namespace."""

from __future__ import annotations

import click

from volcano_py.cli import job_commands
from volcano_py.cli.connection import api_options, call
from volcano_py.cli.errors import Tool
from volcano_py.cli.waiting import wait_option


@click.command(cls=Tool)
@click.option("-n", "--name", required=True, help="Name of the job.")
@click.option("-N", "--namespace", default="default", show_default=True, help="Namespace of the job.")
@wait_option("Wait until the job is Running.")
@api_options
def main(name: str, namespace: str, wait: bool, timeout: float, kubeconfig: str, master: str) -> None:
    """Resume an aborted job."""
    call(
        "",
        kubeconfig,
        master,
        lambda client: job_commands.resume(client, namespace, name, wait, timeout),
    )


if __name__ == "__main__":
    main(prog_name="vresume")
