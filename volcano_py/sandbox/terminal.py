"""Common to the commands of `volcano-py sandbox`: options, one-line errors, the client of the server.

Commands access a running sandbox as any client does: through its API server, with its kubeconfig (docs/adr/0004).
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from volcano_py.kube.errors import KubeError, Unreachable

if TYPE_CHECKING:
    from volcano_py.kube.client import Client

_PACKAGES = ("kubernetes_validate", "jsonschema_rs", "cel_expr_python")
"""The packages of the extra [sandbox]."""
F = TypeVar("F", bound=Callable[..., Any])

DEFAULT_KUBECONFIG = Path(".sandbox") / "kubeconfig"


def kubeconfig_option() -> Callable[[F], F]:
    return click.option(
        "--kubeconfig",
        type=click.Path(dir_okay=False, path_type=Path),
        default=DEFAULT_KUBECONFIG,
        show_default=True,
        help="Path to the kubeconfig of the sandbox.",
    )


node_shape_option = click.option(
    "--node-shape",
    "node_shapes",
    multiple=True,
    metavar="RESOURCE=AMOUNT,…",
    help="Capacity of a node, e.g. cpu=32,memory=256Gi,nvidia.com/gpu=8; several shapes are used in turn.",
)


def fail(text: str) -> NoReturn:
    """Print one line on stderr and exit with code 1."""
    click.echo(f"sandbox: {text}", err=True)
    sys.exit(1)


def missing_extra() -> str:
    """What to install if the packages of the extra [sandbox] are missing; empty if they are there."""
    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if not missing:
        return ""
    which = "package {} is" if len(missing) == 1 else "packages {} are"
    return (
        f"the sandbox needs the extra [sandbox], whose {which.format(', '.join(missing))} not installed; "
        "install it: pip install 'volcano-py[sandbox]'"
    )


def none_up(kubeconfig: Path) -> NoReturn:
    fail(f"no sandbox is running with {kubeconfig}; start one with `volcano-py sandbox up`")


def ask(kubeconfig: Path, work: Callable[[Client], Awaitable[None]]) -> None:
    """Run a coroutine with a client of the running sandbox; an error is printed as one line."""

    from volcano_py.kube.client import Client

    async def run() -> None:
        async with Client.from_kubeconfig(kubeconfig) as client:
            await work(client)

    try:
        if not kubeconfig.is_file():
            none_up(kubeconfig)
        asyncio.run(run())
    except Unreachable:
        none_up(kubeconfig)
    except (KubeError, ValueError) as error:
        fail(str(error))
