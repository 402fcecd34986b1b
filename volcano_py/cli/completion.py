"""`volcano-py completion`: the shell completion script of a program."""

from __future__ import annotations

from importlib import import_module

import click
from click.shell_completion import get_completion_class

PROGRAMS = ("volcano-py", "vcctl", "vsub", "vjobs", "vqueues", "vcancel", "vsuspend", "vresume")


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.option(
    "--program", type=click.Choice(PROGRAMS), default="volcano-py", show_default=True, help="Program to complete."
)
def completion(shell: str, program: str) -> None:
    """Print the completion script of a program.

    For bash: eval "$(volcano-py completion bash)"
    """
    kind = get_completion_class(shell)
    assert kind is not None
    command = import_module(f"volcano_py.cli.{'main' if program == 'volcano-py' else program}").main
    variable = f"_{program.replace('-', '_').upper()}_COMPLETE"
    completer = kind(command, {}, program, variable)
    click.echo(completer.source_template % completer.source_vars())
