"""`volcano-py dashboard`. Not in Volcano."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import ipaddress
import logging
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from volcano_py.cli.connection import api_options, call
from volcano_py.cli.errors import describe_os_error, fail
from volcano_py.dashboard import tokens

if TYPE_CHECKING:
    from volcano_py.kube.client import Client

PORT = 8090
_EXTRA = "the dashboard needs the extra [dashboard]; install it: pip install 'volcano-py[dashboard]'"


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="Port; 0 selects a free one."
)
@click.option("-n", "--namespace", default="", help="Namespace to show if you may not list all of them.")
@click.option(
    "--metrics", default="", metavar="URL", help="URL of the scheduler's metrics (default: the chart's Service)."
)
@click.option(
    "--token-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Path to a file with the token that viewers need (default: a new token, in a file that only you can read).",
)
@click.option(
    "--no-token", is_flag=True, help="Require no token on a loopback address: every user of this machine may then act."
)
@click.option("--allow-host", multiple=True, metavar="NAME", help="Host name that browsers may use. Can be repeated.")
@click.option("--scheduler-name", default="volcano", show_default=True, help="Scheduler name of the pods.")
@click.option(
    "--lease", default="volcano-system/volcano", show_default=True, help="Lease of the scheduler: NAMESPACE/NAME."
)
@click.option(
    "--nice", type=click.IntRange(0, 19), default=0, help="Lower the priority of the process, as nice -n does."
)
@api_options
def dashboard(
    host: str,
    port: int,
    namespace: str,
    metrics: str,
    token_file: Path | None,
    no_token: bool,
    allow_host: tuple[str, ...],
    scheduler_name: str,
    lease: str,
    nice: int,
    kubeconfig: str,
    master: str,
) -> None:
    """Serve pages about queues, jobs and nodes until Ctrl-C (docs/dashboard.md).

    The dashboard watches and changes the cluster with the permissions of your kubeconfig.
    """
    if importlib.util.find_spec("nicegui") is None:
        fail(_EXTRA, 2)
    os.nice(nice)
    token = _token(host, token_file, no_token)
    listening = _listen(host, port)
    explain = ["--scheduler-name", scheduler_name, "--lease", lease]
    explain += ["--kubeconfig", kubeconfig] if kubeconfig else []
    explain += ["--master", master] if master else []

    async def work(client: Client) -> None:
        from volcano_py.dashboard.actions import Actions
        from volcano_py.dashboard.endpoint import Endpoint
        from volcano_py.dashboard.explaining import Explainer
        from volcano_py.dashboard.models import Models
        from volcano_py.dashboard.shares import Usage
        from volcano_py.dashboard.ui.app import serve
        from volcano_py.dashboard.ui.site import Site
        from volcano_py.dashboard.watches import Watches

        # what informers retry is in the banner of each page
        logging.getLogger("volcano_py.kube").setLevel(logging.CRITICAL)
        watches = Watches(client, namespace or client.namespace)
        site = Site(
            watches,
            Models(watches),
            Actions(client),
            Explainer(explain),
            Endpoint(client, metrics),
            Usage(client),
            client.credentials.server,
        )

        def ready() -> None:
            bound = listening.getsockname()
            name = f"[{bound[0]}]" if ":" in bound[0] else bound[0]
            click.echo(f"The dashboard is at http://{name}:{bound[1]}/{f'?token={token}' if token else ''}")
            if file is not None:
                click.echo(f"The token is in {file}, which only you can read.")
            click.echo(f"It shows {client.credentials.server} with the rights of your kubeconfig. Ctrl-C stops it.")

        # the first page need not wait for the lists
        with watches.viewer(), contextlib.suppress(TimeoutError):
            await asyncio.wait_for(watches.synced(), 5.0)
        try:
            await serve(site, listening, allow_host, token, ready)
        finally:
            watches.stop()

    try:
        with _kept(listening.getsockname()[1], "" if token_file is not None else token) as file:
            call("serve the dashboard", kubeconfig, master, work)
    except KeyboardInterrupt:
        raise SystemExit(0) from None


@contextlib.contextmanager
def _kept(port: int, token: str) -> Iterator[Path | None]:
    """The file of a token that was generated, while the context is active; None without one."""
    if not token:
        yield None
        return
    with contextlib.ExitStack() as stack:
        try:
            file = stack.enter_context(tokens.written(port, token))
        except OSError as error:
            fail(f"the token cannot be written: {describe_os_error(error)}; set XDG_RUNTIME_DIR, or use --token-file")
        yield file


def _token(host: str, file: Path | None, none: bool) -> str:
    """The token that viewers need; empty: none."""
    if none and (file is not None or not _is_loopback(host)):
        fail("--no-token goes with a loopback address and without --token-file; leave it out", 2)
    if file is not None:
        text = file.read_text(encoding="utf-8").strip()
        if len(text) < 16:
            fail(f"{file}: a token has at least 16 characters; write a longer one", 2)
        return text
    return "" if none else tokens.new()


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(128)
    except OSError as error:
        why = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
        fail(f"cannot listen on {host}:{port} ({why}); choose another with --host or --port", 2)
    return listening
