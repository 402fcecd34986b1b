"""`volcano-py`: one program with a subcommand for every component.

Subcommands are imported on use, so that `volcano-py --help` and completion are fast.
"""

from __future__ import annotations

from importlib import import_module

import click

from volcano_py import __version__
from volcano_py.cli.errors import Program

COMMANDS = {
    "demo": ("volcano_py.cli.demo", "demo", "Show a gang job scheduled on an embedded cluster."),
    "sandbox": ("volcano_py.sandbox.options", "sandbox", "Run a complete cluster on this machine."),
    "simulate": (
        "volcano_py.cli.simulate",
        "simulate",
        "Simulate the scheduler for clusters that are described in files.",
    ),
    "dashboard": ("volcano_py.dashboard.command", "dashboard", "Serve the dashboard: queues, jobs and nodes."),
    "snapshot": ("volcano_py.cli.snapshot", "snapshot", "Save the scheduling state of a cluster in a file."),
    "replay": ("volcano_py.cli.replay", "replay", "Run recorded cycles again."),
    "scheduler": ("volcano_py.scheduler.runtime.command", "scheduler", "Run the scheduler."),
    "controller-manager": ("volcano_py.cli.controller_manager", "controller_manager", "Run the controllers."),
    "hypernode-controller": (
        "volcano_py.cli.hypernode_controller",
        "hypernode_controller",
        "Run the HyperNode controller as a separate program.",
    ),
    "webhook-manager": ("volcano_py.cli.webhook_manager", "webhook_manager", "Run the admission webhooks."),
    "config": ("volcano_py.cli.config", "config", "Check, show and compare configurations; print policies."),
    "doctor": ("volcano_py.cli.doctor", "doctor", "Check this machine and a cluster, and print remedies."),
    "migrate": ("volcano_py.cli.migrate", "migrate", "Report differences before a migration from Volcano."),
    "completion": ("volcano_py.cli.completion", "completion", "Print a shell completion script."),
    "version": ("volcano_py.cli.version", "version", "Print the version."),
}
"""name → (module, attribute, one line of help)."""


class LazyGroup(Program):
    """A program with the names and help of its commands, which imports a command on use."""

    def __init__(self, commands: dict[str, tuple[str, str, str]], **kwargs: object) -> None:
        super().__init__(**kwargs)  # type: ignore[arg-type]
        self._lazy = commands

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._lazy)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self._lazy:
            return None
        module, attribute, _ = self._lazy[name]
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, _, text) in self._lazy.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self._lazy and not args[0].startswith("-"):
            from difflib import get_close_matches

            near = get_close_matches(args[0], self._lazy, 1)
            hint = f"did you mean {near[0]}?" if near else f"commands are {', '.join(self._lazy)}"
            raise click.UsageError(f"unknown command {args[0]!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)


@click.group(
    cls=LazyGroup, commands=COMMANDS, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.version_option(__version__, prog_name="volcano-py")
def main() -> None:
    """A batch scheduler for Kubernetes: Volcano's Jobs, PodGroups and Queues."""


if __name__ == "__main__":
    main(prog_name="volcano-py")
