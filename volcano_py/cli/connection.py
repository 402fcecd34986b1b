"""The connection of a command to the API server, and its exit on errors.

Volcano's tools print `Failed to <command>: <error>` and end with status 255.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NoReturn

import click

from volcano_py.cli.errors import describe_os_error
from volcano_py.cli.wrapping import wrapped
from volcano_py.kube.errors import ApiError, KubeError, Unauthorized, Unreachable

if TYPE_CHECKING:
    from volcano_py.kube.client import Client

FAILED = 255


def api_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds -s/--master and -k/--kubeconfig."""
    command = click.option("-s", "--master", default="", help="URL of the API server.")(command)
    return click.option(
        "-k", "--kubeconfig", default="", help="Path to a kubeconfig file (default: KUBECONFIG, ~/.kube/config)."
    )(command)


def call(what: str, kubeconfig: str, master: str, work: Callable[[Client], Awaitable[None]]) -> None:
    """Run `work` with a client; `what` is the command in the error line."""

    from volcano_py.kube.client import Client

    certificate: list[str] = []
    doing = what or _program()

    async def connected() -> None:
        nonlocal doing
        async with Client.for_flags(kubeconfig or None, master or None) as client:
            doing = what
            try:
                await work(client)
            except (Unauthorized, Unreachable):
                tls = client.credentials.tls
                certificate.append(tls.problem() if tls is not None else "")
                doing = what or _program()
                raise

    try:
        asyncio.run(connected())
    except Unauthorized as e:
        exit_failed(doing, f"{e}; {next(filter(None, certificate), _CREDENTIALS)}")
    except ApiError as e:
        exit_failed(what, str(e))
    except Unreachable as e:
        exit_failed(doing, f"{e}; {next(filter(None, certificate), _ADDRESS)}")
    except OSError as e:
        exit_failed(doing, describe_os_error(e))
    except (KubeError, ValueError) as e:
        exit_failed(doing, str(e))


_CREDENTIALS = "check the user's token or certificate in the kubeconfig"
_ADDRESS = "check that the API server runs, and its address in --kubeconfig or --master"


def _program() -> str:
    """`run vjobs`: what failed, if a program without subcommands cannot use a cluster at all."""
    context = click.get_current_context(silent=True)
    return f"run {context.info_name}" if context is not None and context.info_name else ""


def exit_failed(what: str, error: str) -> NoReturn:
    """Report that a command failed, as Volcano's tools do, and exit. `what` is empty for tools without subcommands."""
    text = f"Failed to {what}: {error}" if what else f"Failed to: {error}"
    click.echo(wrapped(text, sys.stdout))
    raise SystemExit(FAILED)
