"""`volcano-py version`."""

from __future__ import annotations

import platform

import click

from volcano_py import __version__


@click.command()
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Output format."
)
def version(output: str) -> None:
    """Print the version of volcano_py and of Python."""
    if output == "json":
        import json

        click.echo(json.dumps({"version": __version__, "python": platform.python_version()}))
    else:
        click.echo(f"volcano-py {__version__} (Python {platform.python_version()})")
