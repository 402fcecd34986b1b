"""`volcano-py completion`: what a shell needs to complete our commands."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.option("--program", type=click.Choice(["volcano-py", "vcctl"]), default="volcano-py")
def completion(shell: str, program: str) -> None:
    """Print the completion script of a program.

    For bash: eval "$(volcano-py completion bash)"
    """
    kind = get_completion_class(shell)
    assert kind is not None
    if program == "vcctl":
        from volcano_py.cli.vcctl import main as command
    else:
        from volcano_py.cli.main import main as command
    variable = f"_{program.replace('-', '_').upper()}_COMPLETE"
    completer = kind(command, {}, program, variable)
    click.echo(completer.source_template % completer.source_vars())
