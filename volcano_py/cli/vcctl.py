"""`vcctl`: jobs, queues and pods from the command line, with the flags, columns and exit codes of Volcano's tool."""

from __future__ import annotations

import click

from volcano_py import __version__
from volcano_py.cli.main import LazyGroup

COMMANDS = {
    "job": ("volcano_py.cli.vcctl_job", "job", "Run, list, view, suspend, resume and delete jobs."),
    "queue": ("volcano_py.cli.vcctl_queue", "queue", "Create, get, list, operate and delete queues."),
    "pod": ("volcano_py.cli.vcctl_pod", "pod", "List the pods of jobs and queues."),
    "version": ("volcano_py.cli.vcctl", "version", "Print the version."),
}


@click.group(
    cls=LazyGroup, commands=COMMANDS, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
def main() -> None:
    """The command line of Volcano's jobs and queues."""


@click.command()
def version() -> None:
    """Print the version."""
    click.echo(f"API Version: v1alpha1\nVersion: {__version__}")


if __name__ == "__main__":
    main(prog_name="vcctl")
