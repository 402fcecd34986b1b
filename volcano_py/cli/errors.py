"""Errors of the command-line programs: one line that contains the remedy, without a traceback."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from volcano_py.cli.terminal import escaping, style
from volcano_py.cli.wrapping import wrapped

USAGE = 2
"""Exit code of an error on the command line."""


def fail(message: str, code: int = 1) -> NoReturn:
    """Print `error: message` and exit."""
    prefix = "error: "
    text = wrapped(message, sys.stderr, len(prefix), len(prefix))
    click.echo(style(prefix, fg="red") + text, err=True)
    raise SystemExit(code)


class _OneLine(click.Command):
    """Reports usage errors in one line, with a reference to the command's help."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, False, **extra)
        with escaping():
            return self._standalone(args, prog_name, complete_var, extra)

    def _standalone(
        self, args: Sequence[str] | None, prog_name: str | None, complete_var: str | None, extra: dict[str, Any]
    ) -> NoReturn:
        try:
            code = super().main(args, prog_name, complete_var, False, **extra)
        except click.UsageError as error:
            _explain(error)
        except click.ClickException as error:
            fail(error.format_message(), error.exit_code)
        except (click.Abort, KeyboardInterrupt):
            fail("interrupted", 130)
        except BrokenPipeError:
            # The reader of the output has closed the pipe; suppress Python's message about it when it flushes at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(1)
        except OSError as error:
            fail(describe_os_error(error))
        sys.exit(code if isinstance(code, int) else 0)


class Program(_OneLine, click.Group):
    """The root of a command tree."""


class Tool(_OneLine):
    """A program with a single command."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("context_settings", {"help_option_names": ["-h", "--help"], "max_content_width": 110})
        super().__init__(*args, **kwargs)


def _explain(error: click.UsageError) -> NoReturn:
    no_arguments = getattr(click.exceptions, "NoArgsIsHelpError", ())
    if no_arguments and isinstance(error, no_arguments):
        error.show()
        sys.exit(USAGE)
    text = " ".join(error.format_message().split()).rstrip(".")
    command = error.ctx.command_path if error.ctx is not None else ""
    fail(f"{text} (see `{command} --help`)" if command else text, USAGE)


def describe_os_error(error: OSError) -> str:
    """An operating system error as `file: reason`, without its number."""
    what = error.strerror or str(error) or type(error).__name__
    return f"{error.filename}: {what}" if error.filename else what
