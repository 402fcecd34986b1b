"""`vsub`: run a job from flags. Volcano: vsub; here -n is the name and -N the namespace."""

from __future__ import annotations

import shlex

import click

from volcano_py.cli import job_commands
from volcano_py.cli.connection import api_options, exit_failed
from volcano_py.cli.dry_run import dry_run_option
from volcano_py.cli.errors import Tool
from volcano_py.cli.job_manifest import Shape, from_flags, shape_options
from volcano_py.cli.output import output_option
from volcano_py.cli.waiting import timeout_option


@click.command(cls=Tool)
@click.option("-n", "--name", default="", help="Name of the job.")
@click.option(
    "-N",
    "--namespace",
    default="default",
    show_default=True,
    envvar="VOLCANO_DEFAULT_JOB_NAMESPACE",
    show_envvar=True,
    help="Namespace of the job.",
)
@shape_options("VOLCANO_DEFAULT_IMAGE", "VOLCANO_SCHEDULER_NAME")
@click.option("-c", "--command", default="", help="Command of the container, with shell quoting.")
@output_option("json", "yaml", "name")
@dry_run_option
@job_commands.run_options
@timeout_option
@api_options
def main(
    name: str,
    namespace: str,
    command: str,
    output: str | None,
    dry_run: str | None,
    awaited: str | None,
    timeout: float,
    kubeconfig: str,
    master: str,
    **shape: str | int,
) -> None:
    """Run a job of one task."""
    if not name:
        exit_failed("", "job name cannot be left blank; use -n")
    try:
        words = shlex.split(command)
    except ValueError as e:
        exit_failed("", f"{e} in the command of -c")
    try:
        manifest = from_flags(name, namespace, Shape(**shape), words)  # type: ignore[arg-type]
    except ValueError as e:
        exit_failed("", str(e))
    submission = job_commands.Submission(manifest, namespace, output, dry_run, awaited, timeout)
    job_commands.submit("", kubeconfig, master, submission)


if __name__ == "__main__":
    main(prog_name="vsub")
