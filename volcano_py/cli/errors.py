"""How our programs end when they cannot go on: one line, no traceback."""

from __future__ import annotations

from typing import NoReturn

import click


def fail(message: str, code: int = 1) -> NoReturn:
    """Print `error: message` and exit."""
    click.echo(click.style("error: ", fg="red") + message, err=True)
    raise SystemExit(code)
