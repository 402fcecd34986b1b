"""`vcctl`: Volcano's objects on the command line, with the flags, columns and exit codes of Volcano's tool."""

from __future__ import annotations

import click

from volcano_py import __version__
from volcano_py.cli.main import LazyGroup
from volcano_py.kube.flags import without_klog_flags

COMMANDS = {
    "explain": ("volcano_py.cli.vcctl_explain", "explain", "Explain why a job waits, and how to unblock it."),
    "job": ("volcano_py.cli.vcctl_job", "job", "Run, list, view, suspend, resume and delete jobs; print logs."),
    "queue": ("volcano_py.cli.vcctl_queue", "queue", "Create, get, list, operate and delete queues; show their tree."),
    "jobflow": ("volcano_py.cli.vcctl_jobflow", "jobflow", "Create, get, list, describe and delete JobFlows."),
    "jobtemplate": (
        "volcano_py.cli.vcctl_jobtemplate",
        "jobtemplate",
        "Create, get, list, describe and delete JobTemplates.",
    ),
    "cronjob": ("volcano_py.cli.vcctl_cronjob", "cronjob", "Create, list, suspend, resume and delete CronJobs."),
    "podgroup": ("volcano_py.cli.vcctl_podgroup", "podgroup", "Get, list, describe and delete PodGroups."),
    "hypernode": ("volcano_py.cli.vcctl_hypernode", "hypernode", "Create, get, list, describe and delete HyperNodes."),
    "reservation": (
        "volcano_py.cli.vcctl_reservation",
        "reservation",
        "Create, get, list, describe and delete Reservations.",
    ),
    "fairshare": ("volcano_py.cli.vcctl_fairshare", "fairshare", "Show usage, shares and order of queues and owners."),
    "pod": ("volcano_py.cli.vcctl_pod", "pod", "List the pods of jobs and queues."),
    "top": ("volcano_py.cli.vcctl_top", "top", "Watch queues, jobs and nodes in the terminal."),
    "version": ("volcano_py.cli.vcctl", "version", "Print the version."),
}


NAMES = {
    "job": ("jobs", "vcjob", "vcjobs", "vj"),
    "queue": ("queues", "q", "queue-v1beta1"),
    "jobflow": ("jobflows", "jf"),
    "jobtemplate": ("jobtemplates", "jt"),
    "cronjob": ("cronjobs", "vccronjob", "vccronjobs", "cronvcjob", "cronvj"),
    "podgroup": ("podgroups", "pg", "pgs", "podgroup-v1beta1"),
    "hypernode": ("hypernodes", "hn"),
    "reservation": ("reservations", "rsv"),
    "pod": ("pods", "po"),
}
"""The names that kubectl accepts for the kinds of the subcommands."""
_SUBCOMMANDS = {other: name for name, others in NAMES.items() for other in others}


class _Vcctl(LazyGroup):
    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        return super().get_command(ctx, _SUBCOMMANDS.get(name, name))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        return super().resolve_command(ctx, [_SUBCOMMANDS.get(args[0], args[0]), *args[1:]])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, without_klog_flags(args))


@click.group(
    cls=_Vcctl, commands=COMMANDS, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
def main() -> None:
    """Manage Volcano's jobs and queues."""


@click.command()
def version() -> None:
    """Print the version."""
    import platform

    unknown = "not recorded"
    for label, text in (
        ("API Version", "v1alpha1"),
        ("Version", __version__),
        ("Git SHA", unknown),
        ("Built At", unknown),
        ("Go Version", f"none, Python {platform.python_version()}"),
        ("Go OS/Arch", f"{platform.system().lower()}/{platform.machine()}"),
    ):
        click.echo(f"{label}: {text}")


if __name__ == "__main__":
    main(prog_name="vcctl")
